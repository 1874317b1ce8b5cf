import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DataFolderLock } from '../../src/storage/data-folder-lock.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { compileSource } from '../tool/compiled-source.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const SAMPLE = new URL('../fixture/samples/build-mixed/otel.jsonl', import.meta.url).pathname;
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-exec-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const env = () => ({ PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, RUN_BRIDGE_DATA_DIR: join(dir, 'data') });
const exec = (
  command: readonly string[],
  more: Readonly<Record<string, string>> = {},
  options: readonly string[] = [],
) => runBridge(['exec', ...options, '--', ...command], { cwd: dir, env: { ...env(), ...more } });
const sh = (script: string, more: Readonly<Record<string, string>> = {}) => exec(['sh', '-c', script], more);

/** Starts a command under `exec`, to be sent signals; resolves when the command says `ready`. */
async function started(
  script: string,
): Promise<{ child: ChildProcess; output: () => string; ended: Promise<unknown[]> }> {
  const child = spawn(process.execPath, [main, 'exec', '--', 'sh', '-c', script], { cwd: dir, env: env() });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const ended = new Promise<unknown[]>((resolve) => child.once('close', (...how) => resolve(how)));
  await until('the command to be ready', () => output.includes('ready'));
  return { child, output: () => output, ended };
}

/** The niceness of each thread of a process: proc_pid_stat(5), field 19. */
function nicenessOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ')[1]?.split(' ')[16]),
  );
}

describe('the exit code', () => {
  test.each([0, 1, 2, 3, 77, 255])('%i of the command is passed on, and nothing is said', async (code) => {
    expect(await sh(`exit ${code}`)).toEqual({ exitCode: code, stdout: '', stderr: '' });
  });

  test('is 127 where there is no such command, as a shell has it', async () => {
    const stderr = 'run-bridge: no-such-command: command not found\n';
    expect(await exec(['no-such-command'])).toEqual({ exitCode: 127, stdout: '', stderr });
  });

  test('is 126 for what cannot be executed', async () => {
    writeFileSync(join(dir, 'plain'), 'echo never\n');
    chmodSync(join(dir, 'plain'), 0o644);
    const { exitCode, stderr } = await exec([join(dir, 'plain')]);
    expect([exitCode, stderr.split('\n').length]).toEqual([126, 2]);
    expect((await exec([dir])).exitCode).toBe(126);
  });

  test('is 2, and nothing is run, when the command is missing or an option is none', async () => {
    expect(await runBridge(['exec'], { cwd: dir, env: env() })).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await exec(['echo', 'no'], {}, ['--jbo', 'x'])).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await exec(['echo', 'no'], {}, ['--flush-timeout', 'soon'])).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'])(
    'is none when %s kills the command: the same signal ends the program',
    async (signal) => {
      const { child, ended } = await started(`echo ready; kill -${signal.slice(3)} $$; sleep 9`);
      expect(await ended).toEqual([null, signal]);
      expect(child.signalCode).toBe(signal);
    },
  );

  test('is 128 and the number for a signal that dumps core', async () => {
    expect((await sh('ulimit -c 0; kill -SEGV $$')).exitCode).toBe(139);
  });
});

describe('the exit code stands once the command has ended', () => {
  /** Runs a command with code 3 in a project, whose files exec looks through when it has ended: there the fault is. */
  function withFault(name: string, fault: string) {
    const project = join(dir, name);
    mkdirSync(join(project, 'target'), { recursive: true });
    writeFileSync(join(project, 'dbt_project.yml'), 'name: shop\n');
    const preloaded = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
      const readdir = fs.promises.readdir;
      fs.promises.readdir = (path, ...rest) => (String(path).endsWith('target') ? (() => { ${fault} })() : readdir(path, ...rest));
      syncBuiltinESMExports();`;
    writeFileSync(join(project, 'fault.mjs'), preloaded);
    const child = spawn(process.execPath, [main, 'exec', '--', 'sh', '-c', 'echo ready; exit 3'], {
      cwd: project,
      env: {
        ...env(),
        RUN_BRIDGE_DATA_DIR: join(project, 'data'),
        RUN_BRIDGE_FLUSH_TIMEOUT: '100ms',
        NODE_OPTIONS: `--import=${join(project, 'fault.mjs')}`,
      },
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const ended = new Promise<unknown[]>((resolve) => child.once('close', (...how) => resolve(how)));
    return { child, ended, stderr: () => stderr };
  }
  const NEVER = 'return new Promise(() => {});';

  test('where what the bridge waits for is never settled and keeps nothing alive', async () => {
    const { ended, stderr } = withFault('unsettled', NEVER);
    expect(await ended).toEqual([3, null]);
    expect(stderr()).toMatch(/^run-bridge: .*waits forever\n$/);
  });

  test('where something throws that nobody catches', async () => {
    const { ended, stderr } = withFault('thrown', `setTimeout(() => { throw new Error('a fault'); }); ${NEVER}`);
    expect(await ended).toEqual([3, null]);
    expect(stderr()).toContain('a fault');
  });

  test('where a rejection is nobody’s', async () => {
    const { ended } = withFault('rejected', `Promise.reject(new Error('a fault')); ${NEVER}`);
    expect(await ended).toEqual([3, null]);
  });

  test('where it hangs: after a while, and soon after a signal', async () => {
    const hang = `setInterval(() => {}, 1000); process.stderr.write('hangs'); ${NEVER}`;
    const [patient, signalled] = [withFault('hanging', hang), withFault('signalled', hang)];
    await until('it to hang', () => signalled.stderr().includes('hangs'));
    signalled.child.kill('SIGTERM');
    expect(await signalled.ended).toEqual([3, null]);
    expect(patient.child.exitCode).toBe(null);
    expect(await patient.ended).toEqual([3, null]);
    expect(patient.stderr()).toMatch(/run-bridge: .*did not end in time/);
  });
});

describe('a command under exec', () => {
  test('is run without -- too, and keeps its own options', async () => {
    const { stdout } = await runBridge(['exec', 'printf', '%s|', '--job', '-x', '--', 'a'], { cwd: dir, env: env() });
    expect(stdout).toBe('--job|-x|--|a|');
  });

  test('gets arguments as they are', async () => {
    const words = ['', 'a b', '*', '$HOME', '"', "'", '\\', 'ü', 'two\nlines', '--', '-h'];
    expect((await exec(['printf', '%s|', ...words])).stdout).toBe(words.map((word) => `${word}|`).join(''));
  });

  test('is run by sh when it is a script without an interpreter line, as shells do', async () => {
    writeFileSync(join(dir, 'script'), 'echo from the script\n');
    chmodSync(join(dir, 'script'), 0o755);
    expect((await exec(['./script'])).stdout).toBe('from the script\n');
  });

  test('writes 64 MiB of any bytes, to a reader that is slow to begin', async () => {
    const bytes = 64 * 1024 * 1024;
    const script = `head -c ${bytes} /dev/zero | tr '\\000' '\\377'; echo done >&2`;
    const command = `"$NODE" "$MAIN" exec -- sh -c '${script.replaceAll("'", `'\\''`)}' | { sleep 1; sha256sum; }`;
    const result = spawnSync('sh', ['-c', command], {
      env: { ...env(), NODE: process.execPath, MAIN: main },
      cwd: dir,
      encoding: 'utf8',
    });
    const expected = createHash('sha256').update(Buffer.alloc(bytes, 0xff)).digest('hex');
    expect([result.stdout.slice(0, 64), result.stderr]).toEqual([expected, 'done\n']);
  });

  test('has descriptors that block, whatever Node does with its own', async () => {
    const script = `python3 -c 'import fcntl, os; print([bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK) for fd in (0, 1, 2)])'; sleep 0.5;
      python3 -c 'import fcntl, os; print([bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK) for fd in (0, 1, 2)])'`;
    expect((await sh(script)).stdout).toBe('[False, False, False]\n[False, False, False]\n');
  });

  test('reads standard input, all of it and nothing but it', () => {
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    const { stdout } = spawnSync(process.execPath, [main, 'exec', '--', 'cat'], { env: env(), cwd: dir, input });
    expect(Buffer.compare(stdout, input)).toBe(0);
  });

  test('keeps its environment, but for what wires it', async () => {
    const { stdout } = await sh('env', { MY_OWN: 'value', DBT_TARGET: 'prod', OTEL_RESOURCE_ATTRIBUTES: 'team=shop' });
    expect(stdout).toMatch(/^MY_OWN=value$/m);
    expect(stdout).toMatch(/^DBT_TARGET=prod$/m);
    expect(stdout).toMatch(/^DBT_EXPORT_TO_OTLP=true$/m);
    expect(stdout).toMatch(/^OTEL_EXPORTER_OTLP_ENDPOINT=http:\/\/127\.0\.0\.1:\d+$/m);
    expect(stdout).toMatch(/^OTEL_RESOURCE_ATTRIBUTES=team=shop,run_bridge\.step\.id=[0-9a-f-]{36}$/m);
    expect(stdout).toMatch(/^DBT_OTEL_FILE_NAME=\/.*\/otel\.jsonl$/m);
  });

  test('leaves nothing behind but its data', async () => {
    await sh('test -d "$(dirname "$DBT_OTEL_FILE_NAME")"');
    expect(readdirSync(join(dir, 'data', 'spool'))).toEqual([]);
  });
});

describe.skipIf(process.platform !== 'linux')('where processors are short', () => {
  test('the command has them once its first records are stored: it keeps its place, and all of the program steps back', async () => {
    const { child, ended } = await started(`cat '${SAMPLE}' > "$DBT_OTEL_FILE_NAME"; echo ready; read line`);
    const { pid = 0 } = child;
    const before = getPriority();
    await until('the program to give way', () =>
      nicenessOf(pid).every((niceness) => niceness >= Math.min(before + 10, 19)),
    );
    expect(traceIdsIn(join(dir, 'data'))).toHaveLength(1);
    const [command] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    expect(nicenessOf(Number(command))).toEqual([before]);
    child.stdin?.end('\n');
    await ended;
  });

  test('it takes its own place again when the command has ended, where the system lets it', async () => {
    const compiled = await compileSource('exec/command-process');
    const script = `
      import { deferToCommand } from '${join(compiled, 'exec/command-process.js')}';
      import { getPriority } from 'node:os';
      const before = getPriority();
      const takeBack = deferToCommand();
      const meanwhile = getPriority();
      takeBack();
      console.log(JSON.stringify({ before, meanwhile, after: getPriority() }));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    rmSync(compiled, { recursive: true });
    const { before, meanwhile, after } = JSON.parse(stdout);
    expect(meanwhile).not.toEqual(before);
    // Only those who may lower a niceness get it back.
    expect(process.getuid?.() === 0 ? before : meanwhile).toEqual(after);
  });
});

describe('a signal to the program', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const)(
    '%s reaches the command once, which may go on',
    async (signal) => {
      const name = signal.slice(3);
      const { child, output, ended } = await started(
        `trap 'echo got ${name}' ${name}; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; exit 5`,
      );
      child.kill(signal);
      expect(await ended).toEqual([5, null]);
      expect(output()).toBe(`ready\ngot ${name}\n`);
    },
  );
});

test('a line of telemetry that is no record is reported and kept; the others are imported', async () => {
  const record = { record_type: 'SpanStart', trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16), span_name: 'x' };
  const rest = {
    start_time_unix_nano: '1',
    severity_number: 9,
    severity_text: 'INFO',
    event_type: 'x',
    attributes: {},
  };
  writeFileSync(join(dir, 'lines'), `${JSON.stringify({ ...record, ...rest })}\n{"record_type":"none"}\n{"torn`);
  const { exitCode, stderr } = await sh(`cat '${join(dir, 'lines')}' > "$DBT_OTEL_FILE_NAME"`);
  const kept = join(dir, 'data', 'rejects.jsonl');
  const said = `run-bridge: lines or requests of telemetry that cannot be read: 2, kept in ${kept}\n`;
  expect([exitCode, stderr]).toEqual([0, said]);
  const rejects = readFileSync(kept, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).text);
  expect(rejects).toEqual(['{"record_type":"none"}', '{"torn']);
  expect(readFileSync(join(dir, 'data', 'runs', 'a'.repeat(32), 'telemetry.jsonl'), 'utf8').split('\n')).toHaveLength(
    2,
  );
});

test('a request that is no OTLP is reported and kept; it was answered before it was read', async () => {
  const script = `fetch(process.env.OTEL_EXPORTER_OTLP_ENDPOINT + '/v1/traces', {
    method: 'POST', headers: { 'content-type': 'application/x-protobuf' }, body: 'no spans',
  }).then((answer) => console.log(answer.status))`;
  const { exitCode, stdout, stderr } = await exec([process.execPath, '-e', script]);
  const kept = join(dir, 'data', 'rejects.jsonl');
  const said = `run-bridge: lines or requests of telemetry that cannot be read: 1, kept in ${kept}\n`;
  expect([exitCode, stdout, stderr]).toEqual([0, '200\n', said]);
  const reject = JSON.parse(readFileSync(kept, 'utf8'));
  expect(reject).toMatchObject({ file: 'OTLP', place: 'POST /v1/traces', count: 1 });
  expect(Buffer.from(reject.text, 'base64').toString()).toBe('no spans');
});

describe('the run in the environment of a command', () => {
  const PRINT = 'env | grep DBT_CLOUD_ | sort';
  /** What the command printed of its environment. */
  const variables = ({ stdout }: { readonly stdout: string }) =>
    Object.fromEntries(
      stdout.split('\n').flatMap((line) => [...line.matchAll(/^(\w+)=(.*)$/g)].map(([, ...pair]) => pair)),
    );
  const printed = async (options: readonly string[], more: Readonly<Record<string, string>> = {}) => {
    const ended = await exec(['sh', '-c', PRINT], more, options);
    expect(ended).toMatchObject({ stderr: '' });
    return variables(ended);
  };

  test('is named as the hosted platform names it where the job is named, or where that is asked for', async () => {
    const named = await printed(['--job', 'nightly', '--reason', 'by hand']);
    const ids = { RUN_ID: '1001', JOB_ID: '4001', PROJECT_ID: '2001', ENVIRONMENT_ID: '3001', ACCOUNT_ID: '10001' };
    const all = Object.entries({ ...ids, RUN_REASON: 'by hand', RUN_REASON_CATEGORY: 'other' });
    expect(named).toEqual({
      ...Object.fromEntries(all.map(([name, value]) => [`DBT_CLOUD_${name}`, value])),
      ...Object.fromEntries(all.map(([name, value]) => [`DBT_ENV_CUSTOM_ENV_DBT_CLOUD_${name}`, value])),
    });
    expect(await printed(['--platform-env'])).toMatchObject({ DBT_CLOUD_RUN_ID: '1002', DBT_CLOUD_RUN_REASON: '' });
    expect(await exec(['sh', '-c', `${PRINT}; true`])).toMatchObject({ stdout: '', stderr: '' });
  });

  test('keeps what is set', async () => {
    const set = { DBT_CLOUD_RUN_ID: '77', DBT_ENV_CUSTOM_ENV_DBT_CLOUD_JOB_ID: 'mine' };
    expect(await printed(['--job', 'nightly'], set)).toMatchObject({
      ...set,
      DBT_ENV_CUSTOM_ENV_DBT_CLOUD_RUN_ID: '77',
      DBT_CLOUD_JOB_ID: '4001',
    });
  });

  test('is the same for the steps of one run', async () => {
    const night = ['--job', 'nightly', '--run-id', 'night'];
    const first = await printed(night);
    expect(first).toMatchObject({ DBT_CLOUD_RUN_ID: '1001' });
    expect(await printed([...night, '--last'])).toEqual(first);
    expect(await printed(night)).toMatchObject({ DBT_CLOUD_RUN_ID: '1002' });
  });

  test('is known while another command holds the data folder', async () => {
    await printed(['--job', 'nightly']);
    const lock = DataFolderLock.acquire(join(dir, 'data'), { pid: process.pid, since: '', address: null });
    try {
      const held = await exec(['sh', '-c', PRINT], {}, ['--job', 'nightly', '--flush-timeout', '100ms']);
      expect(variables(held)).toMatchObject({ DBT_CLOUD_RUN_ID: '1002' });
    } finally {
      lock.release();
    }
  });

  test('is left out, with a line that says so, where it cannot be known before the command starts', async () => {
    const { exitCode, stdout, stderr } = await exec(['sh', '-c', `${PRINT}; exit 3`], {}, [
      ...['--job', 'nightly', '--to', 'http://127.0.0.1:1', '--flush-timeout', '100ms'],
    ]);
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/^run-bridge: .*; the command starts without DBT_CLOUD_RUN_ID in its environment$/m);
  });
});

/** Keeping what goes to a file means reading the file by its descriptor, from /proc. */
describe.skipIf(process.platform !== 'linux')('what a command writes', () => {
  const recorded = `cat '${SAMPLE}' > "$DBT_OTEL_FILE_NAME"`;
  /** Runs a shell's words around `exec`, which stands in them as `$EXEC`. */
  const shell = (words: string, more: Readonly<Record<string, string>> = {}) => {
    const child = spawn('sh', ['-c', words.replaceAll('$EXEC', '"$NODE" "$MAIN" exec')], {
      env: { ...env(), NODE: process.execPath, MAIN: main, ...more },
      cwd: dir,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    return new Promise<{ exitCode: number | null; output: string }>((resolve) =>
      child.once('close', (exitCode) => resolve({ exitCode, output })),
    );
  };
  /** The artifacts of the run, by their paths. */
  const kept = () => {
    const folder = join(dir, 'data', 'artifacts');
    const [run = ''] = existsSync(folder) ? readdirSync(folder).filter((name) => /^\d+$/.test(name)) : [];
    const step = join(folder, run, '1');
    if (run === '' || !existsSync(step)) return {};
    return Object.fromEntries(readdirSync(step).map((name) => [name, readFileSync(join(step, name))]));
  };
  const read = (name: string) => readFileSync(join(dir, name));

  test('is an artifact where it goes to a file, from where the command began, in its order, and the file is its own', async () => {
    const script = `${recorded}; echo one; echo two >&2; printf '\\033[32mthree\\033[0m\\n'; exit 3`;
    const { exitCode, output } = await shell(
      `echo before; { echo log; $EXEC -- sh -c '${script.replaceAll("'", `'\\''`)}'; } > build.log 2>&1`,
    );
    expect([exitCode, output]).toEqual([3, 'before\n']);
    const written = 'one\ntwo\n\u001b[32mthree\u001b[0m\n';
    expect(read('build.log').toString()).toBe(`log\n${written}`);
    expect(Object.entries(kept()).map(([name, bytes]) => [name, bytes.toString()])).toEqual([['output.txt', written]]);
    expect(readdirSync(join(dir, 'data', 'spool'))).toEqual([]);
  });

  test('is two artifacts where standard output and error are two files, and one where the other goes elsewhere', async () => {
    const script = `${recorded}; echo out; echo err >&2`;
    const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
    expect(await shell(`$EXEC -- sh -c ${quoted} > out.log 2> err.log`)).toEqual({ exitCode: 0, output: '' });
    expect(Object.entries(kept()).map(String)).toEqual(['stderr.txt,err\n', 'stdout.txt,out\n']);
    rmSync(join(dir, 'data'), { recursive: true });
    expect(await shell(`$EXEC -- sh -c ${quoted} 2>> err.log`)).toEqual({ exitCode: 0, output: 'out\n' });
    expect(Object.entries(kept()).map(String)).toEqual(['stderr.txt,err\n']);
  });

  test('is not kept of a pipe or of /dev/null, which nothing comes between', async () => {
    const script = `${recorded}; echo $(readlink /proc/self/fd/1)`;
    const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
    const { output } = await shell(
      `readlink /proc/self/fd/1 >&2; { readlink /proc/$$/fd/1 >&2; $EXEC -- sh -c ${quoted}; } | cat`,
    );
    expect(output).toMatch(/pipe:\[\d+\]\n$/);
    expect(kept()).toEqual({});
    await shell(`$EXEC -- sh -c ${quoted} > /dev/null 2>&1`);
    expect(kept()).toEqual({});
  });

  test('ends the command by SIGPIPE, as without exec, when its reader has gone', async () => {
    const { output } = await shell(`{ $EXEC -- yes; kill -l $? >&2; } | head -n 1`);
    expect(output).toMatch(/^y\n/);
    expect(output).toMatch(/PIPE\n$/);
  });

  test('is kept of 10 MB by its beginning and its end, in whole lines, and says what is left out', async () => {
    const script = `${recorded}; seq -f %09.0f 1000000`;
    const { exitCode } = await shell(`$EXEC -- sh -c '${script.replaceAll("'", `'\\''`)}' > build.log`);
    expect([exitCode, read('build.log').byteLength]).toEqual([0, 10_000_000]);
    const text = kept()['stdout.txt']?.toString() ?? '';
    expect(text.length).toBeLessThan(4 * 1024 * 1024 + 100);
    expect(text).toMatch(/^000000001\n000000002\n/);
    expect(text).toMatch(/\n\n\[run-bridge: 5,\d{3},\d{3} bytes are left out here\]\n\n\d{9}\n/);
    expect(text).toMatch(/\n001000000\n$/);
  });

  test('is kept as bytes, whatever they are, without secrets of the environment', async () => {
    const script = `${recorded}; head -c 70000 /dev/zero | tr '\\000' '\\377'; echo "to $DBT_PASSWORD"`;
    await shell(`$EXEC -- sh -c '${script.replaceAll("'", `'\\''`)}' > build.log`, { DBT_PASSWORD: 'pässword' });
    expect(read('build.log').subarray(70_000).toString()).toBe('to pässword\n');
    const bytes = kept()['stdout.txt'] ?? Buffer.alloc(0);
    expect(Buffer.compare(bytes, Buffer.concat([Buffer.alloc(70_000, 0xff), Buffer.from('to ****\n')]))).toBe(0);
  });

  test('does not keep exec waiting for what the command left in the background, which writes on', async () => {
    const left = `{ until [ -e go ]; do sleep 0.1; done; echo late; touch done; } &`;
    const script = `${recorded}; ${left} echo early`;
    const { exitCode } = await shell(`$EXEC -- sh -c '${script.replaceAll("'", `'\\''`)}' > build.log 2>&1`);
    expect([exitCode, read('build.log').toString()]).toEqual([0, 'early\n']);
    expect(kept()['output.txt']?.toString()).toBe('early\n');
    writeFileSync(join(dir, 'go'), '');
    await until('the last words', () => existsSync(join(dir, 'done')));
    expect(read('build.log').toString()).toBe('early\nlate\n');
  });

  test('is kept without telemetry where the command failed', async () => {
    expect(await shell(`$EXEC -- sh -c 'echo fine' > build.log 2>&1`)).toEqual({ exitCode: 0, output: '' });
    expect(kept()).toEqual({});
    expect(await shell(`$EXEC -- sh -c 'echo no such thing; exit 4' > build.log 2>&1`)).toEqual({
      exitCode: 4,
      output: '',
    });
    expect(Object.entries(kept()).map(String)).toEqual(['output.txt,no such thing\n']);
  });
});

describe('reports of exec', () => {
  const sample = new URL('../fixture/samples/build-mixed-fusion', import.meta.url).pathname;
  const engine = ['--', 'sh', '-c', `cat '${sample}/otel.jsonl' > "$DBT_OTEL_FILE_NAME"; exit 3`];
  const exec = (args: readonly string[], more: Record<string, string> = {}) =>
    runBridge(['exec', ...args, ...engine], { cwd: dir, env: { ...env(), ...more } });
  const read = (name: string) => readFileSync(join(dir, name), 'utf8');

  test('are written when the command has ended, and leave its exit code and output as they are', async () => {
    const list = 'text,junit=junit.xml,html=report.html,markdown=report.md,perfetto=trace.json';
    const { exitCode, stdout, stderr } = await exec(['--summary', '--report', list]);
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/^build: failed after 1\.8 s$/m);
    expect(stderr).toMatch(
      /^failed with an error:\n {2}model\.shop\.broken \(models\/marts\/broken\.sql\): Database Error/m,
    );
    expect(read('junit.xml')).toContain('<testsuites name="run-bridge" tests="11" failures="2" errors="1"');
    expect(read('junit.xml')).toMatch(/<testsuite name="dbt build [^"]*[^s]" tests="10" failures="2" errors="0"/);
    expect(read('junit.xml')).toMatch(
      /<testsuite name="dbt build .*: errors" tests="1" failures="0" errors="1".*\n<testcase name="model broken" classname="build\/shop\/models\/marts\/broken.sql"/,
    );
    expect(read('report.html')).toContain('model broken');
    expect(read('report.md')).toContain('**`model broken`**');
    expect(JSON.parse(read('trace.json')).traceEvents.length).toBeGreaterThan(50);
    const [verdict, place] = stderr.trimEnd().split('\n').slice(-2);
    expect(verdict).toMatch(
      /^run-bridge: build: failed after 1\.8 s: model broken: Binder Error: .* not found.* \(models\/marts\/broken\.sql\); and 2 more$/,
    );
    expect(place).toMatch(/^run-bridge: 01a1fb8ed69e7ef184c99d1f72b8766e in .*\/runs$/);
  });

  test('end with the address of the page of a bridge elsewhere, as far as it can be reached from here', async () => {
    const dataFolder = join(dir, 'elsewhere');
    const ended = async (bridge: BridgeProcess) => {
      const { exitCode, stderr } = await exec(['--summary', '--to', bridge.otlpUrl]);
      expect(exitCode).toBe(3);
      return stderr.trimEnd().split('\n').slice(-3);
    };
    const verdict = expect.stringMatching(/^run-bridge: build: failed after 1\.8 s: model broken/);
    const first = await BridgeProcess.start({ dataFolder, env: { HOME: dir } });
    const place = expect.stringMatching(/^run-bridge: 01a1fb8ed69e7ef184c99d1f72b8766e in http:/);
    expect(await ended(first)).toEqual([place, verdict, `run-bridge: ${first.webUrl}/runs/1001`]);
    await first.stop();
    const args = ['--public-url', 'https://runs.example.com'];
    const second = await BridgeProcess.start({ dataFolder, env: { HOME: dir }, args });
    const page = expect.stringMatching(/^run-bridge: https:\/\/runs\.example\.com\/runs\/\d+$/);
    expect(await ended(second)).toEqual([place, verdict, page]);
    await second.stop();
  });

  test("go into the summary of a CI system's step by themselves, redacted, unless that is turned off", async () => {
    const summary = { GITHUB_STEP_SUMMARY: join(dir, 'summary.md') };
    expect(await exec([], summary)).toMatchObject({ exitCode: 3, stderr: '' });
    expect(read('summary.md')).toMatch(/^### ❌ `dbt build .*` failed after 1\.8 s\n/);
    expect(read('summary.md')).toContain('values redacted');
    rmSync(join(dir, 'summary.md'));
    expect(await exec(['--no-ci'], summary)).toMatchObject({ exitCode: 3, stderr: '' });
    expect(existsSync(join(dir, 'summary.md'))).toBe(false);

    const azure = { TF_BUILD: 'True', AGENT_TEMPDIRECTORY: dir };
    const { exitCode, stderr } = await exec([], azure);
    expect(exitCode).toBe(3);
    const path = /^##vso\[task\.uploadsummary\](.*)\n$/.exec(stderr)?.[1] ?? '';
    expect(readFileSync(path, 'utf8')).toMatch(/^### ❌ `dbt build .*` failed after 1\.8 s\n/);
    expect(await exec(['--no-ci'], azure)).toMatchObject({ exitCode: 3, stderr: '' });
  });

  test('that cannot be written are a line, and the others are written', async () => {
    const { exitCode, stderr } = await exec(['--report', 'html=nowhere/report.html,junit=junit.xml']);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/^run-bridge: there is no report of the command: .*nowhere\/report\.html/m);
    expect(read('junit.xml')).toContain('<testsuites');
    expect(await exec(['--report', 'jnuit=x'])).toMatchObject({
      exitCode: 2,
      stderr: 'run-bridge: --report: "jnuit" is no format; did you mean junit?\n',
    });
  });
});

describe('why a command ended', () => {
  const sampleOf = (name: string) => new URL(`../fixture/samples/${name}/otel.jsonl`, import.meta.url).pathname;
  const runFile = () => {
    const [traceId = ''] = traceIdsIn(join(dir, 'data'));
    return JSON.parse(readFileSync(join(dir, 'data', 'runs', traceId, 'run.json'), 'utf8'));
  };
  /** Telemetry of a run that was cut short within a second of its first failure, and was not asked to be. */
  const cutShort = () => {
    const path = join(dir, 'lines');
    writeFileSync(path, readFileSync(sampleOf('fail-fast'), 'utf8').replaceAll(' --fail-fast', ''));
    return path;
  };

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'is %s where exec saw it, however soon after a failure',
    async (signal) => {
      const { child, ended } = await started(
        `trap 'cat "${cutShort()}" > "$DBT_OTEL_FILE_NAME"; exit 1' ${signal.slice(3)}; echo ready; while :; do sleep 0.05; done`,
      );
      child.kill(signal);
      expect(await ended).toEqual([1, null]);
      expect(runFile().steps).toMatchObject([
        { verdict: 'canceled', status_message: expect.stringMatching(/^Interrupted: /) },
      ]);
    },
    30_000,
  );

  test('may be fail-fast, by a variable, where exec saw no signal', async () => {
    expect((await sh(`cat "${cutShort()}" > "$DBT_OTEL_FILE_NAME"; exit 1`)).exitCode).toBe(1);
    expect(runFile().steps).toMatchObject([
      { verdict: 'error', status_message: expect.stringMatching(/^Stopped by fail-fast or by somebody after /) },
    ]);
  }, 30_000);

  test('is no test with a warning where it was interrupted', async () => {
    const script = `cat '${sampleOf('interrupted')}' > "$DBT_OTEL_FILE_NAME"; exit 1`;
    const { stderr } = await exec(['sh', '-c', script], {}, ['--summary']);
    expect(stderr).toMatch(/^run-bridge: build: canceled after [\d.]+ s: Interrupted: 2 nodes canceled$/m);
  }, 30_000);

  test('is said once where it could not be started, with nothing about telemetry', async () => {
    const { stderr } = await exec(['no-such-command'], {}, ['--summary']);
    expect(stderr).toBe('run-bridge: no-such-command: command not found\n');
    const { stdout } = await runBridge(['runs'], { cwd: dir, env: env() });
    expect(stdout).toContain('The command could not be started (no-such-command: command not found)');
  }, 30_000);
});

describe('what exec leaves behind', () => {
  const sample = new URL('../fixture/samples/build-clean', import.meta.url).pathname;
  const lines = readFileSync(join(sample, 'otel.jsonl'), 'utf8');
  const [, traceId = ''] = /"trace_id":"([0-9a-f]{32})"/.exec(lines) ?? [];
  const data = () => join(dir, 'data');
  const runFile = () => JSON.parse(readFileSync(join(data(), 'runs', traceId, 'run.json'), 'utf8'));
  const report = () => runBridge(['report'], { cwd: dir, env: env() });

  test.skipIf(process.platform !== 'linux')(
    'is finished by the next command, once an engine that outlived a killed exec has ended',
    async () => {
      // The engine holds its file open, as engines do, and ends when it is told to.
      const script = `exec 3>>"$DBT_OTEL_FILE_NAME"; head -n 40 '${sample}/otel.jsonl' >&3; echo ready $$
        until [ -e '${dir}/go' ]; do sleep 0.1; done; tail -n +41 '${sample}/otel.jsonl' >&3`;
      const child = spawn(process.execPath, [main, 'exec', '--job', 'nightly', '--', 'sh', '-c', script], {
        cwd: dir,
        env: env(),
      });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
      await until('the engine to be at work', () => output.includes('ready'));
      const engine = Number(/ready (\d+)/.exec(output)?.[1]);
      const [spooled = ''] = await until('its folder', () => {
        const names = existsSync(join(data(), 'spool')) ? readdirSync(join(data(), 'spool')) : [];
        return names.some((name) => existsSync(join(data(), 'spool', name, 'lock.db'))) && names;
      });
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      await report();
      expect(existsSync(join(data(), 'spool', spooled))).toBe(true);
      writeFileSync(join(dir, 'go'), '');
      await until('the end of the engine', () => !existsSync(`/proc/${engine}`));
      expect((await report()).stdout).toContain('job nightly');
      expect(readFileSync(join(data(), 'runs', traceId, 'telemetry.jsonl'), 'utf8') === lines).toBe(true);
      expect(runFile()).toMatchObject({ state: 'finished', job: { name: 'nightly' }, steps: [{ verdict: 'success' }] });
      expect(existsSync(join(data(), 'runs', traceId, 'telemetry.parquet'))).toBe(true);
      expect(readdirSync(join(data(), 'spool'))).toEqual([]);
    },
  );

  const engine = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
  const NAMES = ['parse', 'build-clean', 'test-command'];
  const invocations = NAMES.map((name) => {
    const folder = new URL(`../fixture/samples/${name}`, import.meta.url).pathname;
    const [, id = ''] = /"trace_id":"([0-9a-f]{32})"/.exec(readFileSync(join(folder, 'otel.jsonl'), 'utf8')) ?? [];
    return { name, folder, traceId: id, invocationId: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') };
  });
  /**
   * Three engine commands, each of which writes its results over those before it, and a model that the first alone writes.
   * @param after what the script does after each, by its number from 1
   */
  const three = (flags = '', after: (number: number) => string = () => '') => {
    mkdirSync(join(dir, 'target', 'run'), { recursive: true });
    writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\n');
    const runs = invocations.map(
      ({ folder, invocationId }, index) => `
        echo '{"metadata":{"invocation_id":"${invocationId}"}}' > target/run_results.json
        [ -e target/run/a.sql ] || echo 'select 1' > target/run/a.sql
        '${process.execPath}' '${engine}' '${folder}' ${flags}
        ${after(index + 1)}`,
    );
    return `${runs.join('')}\nexit 3`;
  };
  /** The three are steps 1, 2 and 3 of one run, with artifacts of their own. */
  const expectThreeSteps = async () => {
    const all = invocations.map(({ traceId: id }) =>
      JSON.parse(readFileSync(join(data(), 'runs', id, 'run.json'), 'utf8')),
    );
    const ended = [{ kind: 'within' }, { kind: 'within' }, { kind: 'exited', exit_code: 3 }];
    const runId = all[0].job?.run_id;
    expect(all).toMatchObject(
      ended.map((ending, index) => ({ job: { run_id: runId }, steps: [{ step: { index: index + 1, ending } }] })),
    );
    const artifacts = join(data(), 'artifacts', String(runId));
    const kept = invocations.map((_, index) =>
      JSON.parse(readFileSync(join(artifacts, String(index + 1), 'run_results.json'), 'utf8')),
    );
    expect(kept).toEqual(invocations.map(({ invocationId }) => ({ metadata: { invocation_id: invocationId } })));
    expect(['1', '2', '3'].filter((step) => existsSync(join(artifacts, step, 'run', 'a.sql')))).toEqual(['1']);
  };

  test('has a step with artifacts of its own for each engine command of a script', async () => {
    expect(await sh(three())).toEqual({ exitCode: 3, stdout: '', stderr: '' });
    await expectThreeSteps();
    expect(readdirSync(join(data(), 'spool'))).toEqual([]);
  });

  test('has them, too, where the engine sends no OTLP, and its file alone says that a command has ended', async () => {
    const copied = (number: number) => `'${data()}'/spool/*/snapshots/${number}/run_results.json`;
    const script = three('--no-otlp', (number) =>
      number < 3 ? `until [ -s ${copied(number)} ]; do sleep 0.1; done` : '',
    );
    expect(await sh(script, { DBT_EXPORT_TO_OTLP: 'false' })).toEqual({ exitCode: 3, stdout: '', stderr: '' });
    await expectThreeSteps();
  });

  test('has them, too, where all of it was left in a folder and is imported', async () => {
    writeFileSync(join(dir, 'file'), '');
    const { stderr } = await sh(three(), { RUN_BRIDGE_DATA_DIR: join(dir, 'file', 'data') });
    const [, folder = ''] = /left in (\S+): run-bridge import imports it/.exec(stderr) ?? [];
    expect(await runBridge(['import', folder], { cwd: dir, env: env() })).toMatchObject({
      exitCode: 0,
    });
    await expectThreeSteps();
  });

  test.each(['exec', 'serve'])(
    'is what could not be stored at once of very many artifacts: %s, started next, stores the rest',
    async (next) => {
      writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\n');
      const write = `const fs = require('node:fs'); fs.mkdirSync('target/compiled', { recursive: true });
        for (let i = 0; i < 800; i += 1) fs.writeFileSync('target/compiled/m' + i + '.sql', 'select ' + i);`;
      const script = `'${process.execPath}' '${engine}' '${sample}'; '${process.execPath}' -e "${write}"`;
      const { exitCode, stderr } = await runBridge(['exec', '--', 'sh', '-c', script], {
        cwd: dir,
        env: env(),
        timeoutMs: 120_000,
      });
      const [, count = '0', folder = ''] =
        /^run-bridge: artifacts of the command that are not kept yet: ([\d,]+); they are left in (\S+): the next start of run-bridge takes them in\n$/.exec(
          stderr,
        ) ?? [];
      expect([exitCode, folder === '' ? stderr : '']).toEqual([0, '']);
      const step = () => join(data(), 'artifacts', '1001', '1', 'compiled');
      const stored = () => (existsSync(step()) ? readdirSync(step()).length : 0);
      expect(stored() + Number(count.replace(',', ''))).toBe(800);
      // The engine writes the very files again; what is left does not change with them.
      for (const name of readdirSync(join(dir, 'target', 'compiled'))) {
        writeFileSync(join(dir, 'target', 'compiled', name), 'of another run');
      }
      const later = next === 'serve' ? await BridgeProcess.start({ dataFolder: data() }) : undefined;
      try {
        const look = async () => {
          if (later === undefined) await exec(['true']);
          return readdirSync(join(data(), 'spool')).length === 0;
        };
        await until('all to be stored', look, 180_000);
      } finally {
        await later?.stop();
      }
      expect(stored()).toBe(800);
      expect(readFileSync(join(step(), 'm799.sql'), 'utf8')).toBe('select 799');
    },
    240_000,
  );

  test('in the temporary folder keeps its job, its exit code and each record once when it is imported', async () => {
    writeFileSync(join(dir, 'file'), '');
    const script = `'${process.execPath}' '${engine}' '${sample}'; exit 4`;
    const unusable = { RUN_BRIDGE_DATA_DIR: join(dir, 'file', 'data') };
    const { exitCode, stderr } = await exec(['sh', '-c', script], unusable, ['--job', 'nightly']);
    const [, folder = ''] = /left in (\S+): run-bridge import imports it/.exec(stderr) ?? [];
    expect([exitCode, folder]).toEqual([4, expect.stringMatching(/run-bridge-[0-9a-f-]+$/)]);
    const imported = await runBridge(['import', folder], { cwd: dir, env: env() });
    const count = lines.trimEnd().split('\n').length;
    expect(imported).toMatchObject({ exitCode: 0, stderr: expect.stringContaining(`: ${count} records from 1 file`) });
    expect(readFileSync(join(data(), 'runs', traceId, 'telemetry.jsonl'), 'utf8') === lines).toBe(true);
    expect(runFile()).toMatchObject({
      job: { name: 'nightly' },
      steps: [{ step: { ending: { kind: 'exited', exit_code: 4 } } }],
    });
  });
});

describe('a bridge that fails', () => {
  const succeeds = async (more: Readonly<Record<string, string>>, pattern: RegExp) => {
    const { exitCode, stdout, stderr } = await sh('echo out; exit 4', more);
    expect([exitCode, stdout]).toEqual([4, 'out\n']);
    expect(stderr).toMatch(pattern);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  };

  test('says so in a line when its configuration is wrong; the command runs, wired to nothing', async () => {
    await succeeds({ RUN_BRIDGE_REDACTION: 'everything' }, /RUN_BRIDGE_REDACTION.*the command runs/);
    const { stdout } = await sh('env', { RUN_BRIDGE_REDACTION: 'everything' });
    expect(stdout).not.toMatch(/OTLP/);
  });

  test('says so in a line when the data folder cannot be made', async () => {
    writeFileSync(join(dir, 'file'), '');
    await succeeds({ RUN_BRIDGE_DATA_DIR: join(dir, 'file', 'data') }, /data folder cannot be created/);
  });

  test('says nothing at all where it is to be quiet', async () => {
    writeFileSync(join(dir, 'file'), '');
    const more = { RUN_BRIDGE_DATA_DIR: join(dir, 'file', 'data') };
    expect(await exec(['sh', '-c', 'exit 4'], more, ['--quiet'])).toEqual({ exitCode: 4, stdout: '', stderr: '' });
  });
});

const hasPython = spawnSync('python3', ['--version']).status === 0;
describe.skipIf(!hasPython)('in a terminal', () => {
  const pty = (...args: readonly string[]) => ptyWith({}, ...args);
  const ptyWith = (more: Record<string, string>, ...args: readonly string[]) => {
    const { CI: _ci, ...own } = process.env;
    const { stdout, stderr } = spawnSync('python3', [join('test', 'tool', 'terminal.py'), ...args], {
      env: { ...own, ...env(), ...more },
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(stderr).toBe('');
    return JSON.parse(stdout) as { exit: number; output: string };
  };
  const wrapped = (script: string) => [process.execPath, main, 'exec', '--', 'sh', '-c', script];

  test('the command has the terminal, its size, and is in its foreground', () => {
    const script = 'for fd in 0 1 2; do test -t $fd && printf "$fd "; done; stty size; ps -o stat= -p $$ | grep -c +';
    expect(pty('none', ...wrapped(script))).toEqual({ exit: 0, output: '0 1 2 40 132\r\n1\r\n' });
  });

  test('Ctrl+C reaches the command once', () => {
    const script = 'trap "echo got INT" INT; echo ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; exit 6';
    const { exit, output } = pty('ctrl-c', ...wrapped(script));
    expect(exit).toBe(6);
    expect(output.match(/got INT/g)).toHaveLength(1);
  });

  test('Ctrl+C that kills the command ends the program by SIGINT', () => {
    expect(pty('ctrl-c', ...wrapped('echo ready; sleep 9')).exit).toBe(-2);
  });

  test('Ctrl+Z stops both, and both go on', () => {
    const { exit, output } = pty('ctrl-z', ...wrapped('echo ready; sleep 0.5; echo went on; exit 8'));
    expect(exit).toBe(8);
    expect(output).toContain('stopped');
    expect(output).toContain('went on');
  });

  test('a line says at the end how it went, why, and where the run is; not in CI, nor where it is to be quiet', async () => {
    const log = (name: string) => new URL(`../fixture/samples/${name}/otel.jsonl`, import.meta.url).pathname;
    const script = (name: string) => `cat '${log(name)}' > "$DBT_OTEL_FILE_NAME"; exit 3`;
    const engine = (name: string, ...flags: string[]) => [
      ...[process.execPath, main, 'exec', ...flags, '--', 'sh', '-c', script(name)],
    ];
    const failed = pty('none', ...engine('build-mixed-fusion'));
    expect(failed.exit).toBe(3);
    expect(failed.output).toMatch(
      /^run-bridge: build: failed after 1\.8 s: model broken: Binder Error.*; run-bridge report 1001\r\n$/,
    );
    expect(failed.output.length).toBeLessThanOrEqual(134);
    expect(pty('none', ...engine('build-clean', '--data-dir', join(dir, 'other'))).output).toMatch(
      /^run-bridge: build: .* after 462 ms.*; run-bridge report 1001 --data-dir \S+other\r\n$/,
    );
    // With artifacts it comes before they are kept.
    writeFileSync(join(dir, 'dbt_project.yml'), 'name: shop\n');
    const leaves = `mkdir -p target; echo '{}' > target/manifest.json; ${script('build-clean')}`;
    const inProject = `cd '${dir}' && exec '${process.execPath}' '${main}' exec --data-dir kept -- sh -c "$LEAVES"`;
    expect(ptyWith({ LEAVES: leaves }, 'none', 'sh', '-c', inProject).output).toMatch(
      /^run-bridge: build: .*; run-bridge report 1001 .*kept\r\n$/,
    );
    expect(existsSync(join(dir, 'kept/artifacts/1001/1/manifest.json'))).toBe(true);
    expect(pty('none', ...engine('joined', '--quiet')).output).toBe('');
    expect(ptyWith({ CI: 'true' }, 'none', ...engine('parse')).output).toBe('');
    // Where a bridge has the data folder it shows the page.
    const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'served'), env: { HOME: dir } });
    const { output } = pty('none', ...engine('build-mixed', '--data-dir', bridge.dataFolder));
    expect(output).toMatch(/^run-bridge: build: failed after 2\.0 s: model broken: .*; http:\S+\/runs\/1001\r\n$/);
    expect(output).toContain(`${bridge.webUrl}/runs/1001`);
    await bridge.stop();
  });

  test('a program that reads keys gets them', () => {
    expect(pty('type', ...wrapped('echo ready; read line; echo "read: $line"')).output).toContain('read: typed');
  });
});
