import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runInProcess } from '../fake/run-in-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-cli-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => runBridge(args, { cwd: dir, env });
/** The same without a process of its own, which takes most of the time, where one such command stands for the others. */
const runHere = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  runInProcess(args, dir, { environment });

describe('help', () => {
  test.each([[[]], [['serve']], [['import']], [['convert']], [['config']], [['demo']], [['version']]])(
    'of %j shows examples, or exit codes, on standard output',
    async (command) => {
      const { exitCode, stdout, stderr } = await (command.length === 0 ? run : runHere)([...command, '--help']);
      expect(exitCode).toBe(0);
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^Usage: run-bridge/);
      expect(stdout).toContain(command.length === 0 ? '\nExit codes:\n' : '\nExamples:\n');
    },
  );

  test('is shown on standard error, with exit code 2, when no command is given', async () => {
    expect(await run([])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Usage: run-bridge/),
    });
  });
});

test('version says the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect((await run(['version'])).stdout).toBe(`run-bridge ${version} (Node ${process.versions.node})\n`);
  expect((await run(['--version'])).stdout).toBe(`${version}\n`);
});

describe('one clear line and exit code 2', () => {
  const oneLine = async (args: readonly string[], env = {}, how: typeof run | typeof runHere = runHere) => {
    const { exitCode, stdout, stderr } = await how(args, env);
    expect({ exitCode, stdout, lines: stderr.trim().split('\n').length }).toEqual({
      exitCode: 2,
      stdout: '',
      lines: 1,
    });
    return stderr.trim();
  };

  test('says what to use in place of a flag that there was', async () => {
    expect(await oneLine(['retain', '--retain-telemetry-age', '90d'])).toBe(
      'run-bridge: --retain-telemetry-age is not a setting any more; use retain-telemetry, such as 90d, 50GiB or 90d,50GiB',
    );
  });

  test.each([
    [['serv'], "run-bridge: unknown command 'serv'; did you mean serve?"],
    [['serve', '--htpp', '1'], "run-bridge: unknown option '--htpp'; did you mean --http?"],
    [['import'], "run-bridge: missing required argument 'PATH'; see run-bridge --help"],
    [
      ['serve', '--http', 'localhost'],
      'run-bridge: --http: "localhost" is not an address such as 127.0.0.1:4318 or a port from 0 to 65535',
    ],
    [['demo', '--to', 'x'], 'run-bridge: --to: "x" is not a URL such as http://127.0.0.1:4318'],
  ])('for %j', async (args, line) => {
    expect(await oneLine(args)).toBe(line);
  });

  test('for a port in use', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const line = await oneLine(['serve', '--http', String(port), '--web', '0'], {}, run);
    server.close();
    expect(line).toBe(
      `run-bridge: 127.0.0.1:${port} is in use by another program; stop it or choose another port with --http HOST:PORT`,
    );
  });

  test('for a data folder that cannot be made', async () => {
    writeFileSync(join(dir, 'file'), '');
    expect(await oneLine(['serve', '--data-dir', 'file/data'])).toBe(
      `run-bridge: ${dir}/file/data: the data folder cannot be created (ENOTDIR); pass a folder that this user can write with --data-dir`,
    );
  });

  test.skipIf(process.getuid?.() === 0)('for a data folder that cannot be written', async () => {
    mkdirSync(join(dir, 'data'));
    chmodSync(join(dir, 'data'), 0o500);
    expect(await oneLine(['serve', '--data-dir', 'data'])).toContain('data folder cannot be locked');
  });

  test('for a JSONL file that cannot be opened', async () => {
    expect(await oneLine(['serve', '--data-dir', 'data', '--jsonl', 'none/all.jsonl'])).toBe(
      `run-bridge: ${dir}/none/all.jsonl cannot be written (ENOENT); pass a file in a folder that is there with --jsonl`,
    );
  });

  test('for an export to the bridge itself', async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:21818' };
    expect(await oneLine(['serve', '--http', '21818', '--web', '0', '--data-dir', 'data'], env)).toMatch(
      /^run-bridge: the destination otlp \(localhost:21818\) is run-bridge itself/,
    );
  });
});

describe('configuration', () => {
  test('tells all problems at once, of flags, variables and file', async () => {
    writeFileSync(join(dir, 'run-bridge.yaml'), 'htpp: 1\nparquet: maybe\n');
    const { exitCode, stderr } = await runHere(['serve', '--web', 'x'], {
      RUN_BRIDGE_EVENT_HOLD: 'y',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'z',
    });
    expect(exitCode).toBe(2);
    expect(stderr.replaceAll(`${dir}/`, '').trim().split('\n')).toEqual([
      'run-bridge: run-bridge.yaml:2: parquet "maybe" is not on or off',
      'run-bridge: run-bridge.yaml:1: htpp is not a setting; did you mean http?',
      'run-bridge: --web: "x" is not an address such as 127.0.0.1:4318 or a port from 0 to 65535',
      'run-bridge: RUN_BRIDGE_EVENT_HOLD: "y" is not a time such as 500ms, 2s or 10m',
      'run-bridge: OTEL_EXPORTER_OTLP_ENDPOINT is not a URL such as http://127.0.0.1:4318',
    ]);
  });

  test('is printed with the origin of each value, secrets masked', async () => {
    writeFileSync(
      join(dir, 'run-bridge.yaml'),
      'web: 127.0.0.1:3\ndestinations: { a: { endpoint: "http://u:geheim@a:1", headers: { key: geheim } } }\n',
    );
    const env = {
      RUN_BRIDGE_REDACTION: 'statements',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b:2',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=geheim',
    };
    const { exitCode, stdout } = await runHere(['config', '--http', '0', '--json'], env);
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain('geheim');
    const { settings } = JSON.parse(stdout);
    expect(settings).toMatchObject({
      http: { value: '127.0.0.1:0', origin: '--http' },
      web: { value: '127.0.0.1:3', origin: join(dir, 'run-bridge.yaml:1') },
      redaction: { value: 'statements', origin: 'RUN_BRIDGE_REDACTION' },
      parquet: { value: 'on', origin: 'default' },
      'destinations.a.headers.key': { value: '****' },
      'destinations.otlp.traces.headers.authorization': { value: '****' },
    });
  });
});

describe('convert and import', () => {
  const sample = new URL('../fixture/samples/build-clean/otel.jsonl', import.meta.url).pathname;

  test('convert writes the other format, says how much, and is silent on standard output', async () => {
    expect(await run(['convert', sample, 'a.parquet'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringMatching(/^wrote a\.parquet: \d+ records\n$/),
    });
    expect(await run(['convert', 'a.parquet', 'a.jsonl'])).toMatchObject({ exitCode: 0 });
    const lines = (path: string) => readFileSync(path, 'utf8').split('\n').length;
    expect(lines(join(dir, 'a.jsonl'))).toBe(lines(sample));
  });

  test('lines that cannot be read are named, and the exit code is 3', async () => {
    writeFileSync(join(dir, 'cut.jsonl'), `${readFileSync(sample, 'utf8')}{"record_type":\n`);
    const { exitCode, stderr } = await run(['convert', 'cut.jsonl', 'cut.parquet']);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/1 could not be read and were skipped:\n {2}line \d+: /);
  });

  test('a file that is not there is one line and exit code 1', async () => {
    expect(await runHere(['convert', 'no.jsonl', 'a.parquet'])).toMatchObject({
      exitCode: 1,
      stderr: 'run-bridge: no.jsonl does not exist. Check the path\n',
    });
  });

  test('import makes record log, Parquet and summary of a file, once however often it is imported', async () => {
    for (const _ of [1, 2]) {
      expect(await run(['import', sample, '--data-dir', 'data'])).toMatchObject({ exitCode: 0, stdout: '' });
    }
    const traceId = JSON.parse(readFileSync(sample, 'utf8').split('\n')[0] ?? '').trace_id;
    const folder = join(dir, 'data/runs', traceId);
    expect(readFileSync(join(folder, 'telemetry.jsonl'), 'utf8')).toBe(readFileSync(sample, 'utf8'));
    expect(readFileSync(join(folder, 'telemetry.parquet')).subarray(0, 4).toString()).toBe('PAR1');
    expect(JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'))).toMatchObject({
      state: 'finished',
      steps: [{ verdict: 'success' }],
    });
  });
});

test('the demo serves the page of its run until it is stopped, and prints a link that opens it', async () => {
  const child = spawn(process.execPath, ['dist/main.js', 'demo', '--serve', '--data-dir', join(dir, 'data')]);
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await until('the link', () => /its page, until Ctrl\+C:\n {2}\S+\n/.test(stdout));
  const link = /Ctrl\+C:\n {2}(\S+)\n/.exec(stdout)?.[1] ?? '';
  const form = await fetch(link, { headers: { accept: 'text/html' }, redirect: 'manual' });
  expect(form.status).toBeLessThan(400);
  expect(new URL(link).searchParams.get('to')).toMatch(/^\/runs\/by-trace\/[0-9a-f]{32}$/);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(stdout).toContain('\nnext:\n');
});

test('the demo says what happened in the run, where the files are and what to do next', async () => {
  const { exitCode, stdout, stderr } = await run(['demo', '--data-dir', 'data']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toContain(
    'build: failed after 2.0 s\nnodes: 1 error, 2 failed, 3 skipped, 1 warned, 13 success, 1 no-op\n',
  );
  expect(stdout).toContain('model.shop.broken (models/marts/broken.sql): Database Error in model broken');
  expect(stdout).toContain('test.shop.status_strict.0c25ec6282 (models/schema.yml:25): 1 failing row\n');
  expect(stdout).toContain(
    'unit_test.shop.ut_target.ut_wrong (models/schema.yml:45): expected and actual rows differ\n',
  );
  expect(stdout).toContain('\nnext:\n');
  const path = /\S+telemetry\.jsonl/.exec(stdout)?.[0] ?? '';
  expect(readFileSync(path, 'utf8').trim().split('\n')).toHaveLength(694);
});
