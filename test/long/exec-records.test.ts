import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const standIn = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const samples = resolve(SAMPLES);
const sample = join(samples, 'build-mixed');
const jsonl = readFileSync(join(sample, 'otel.jsonl'), 'utf8');
const traceId = /"trace_id":"([0-9a-f]{32})"/.exec(jsonl)?.[1] ?? '';

let dir: string;
let data: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-exec-'));
  data = join(dir, 'data');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const env = () => ({ PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, RUN_BRIDGE_DATA_DIR: data });
const engine = (...flags: readonly string[]) => [process.execPath, standIn, sample, ...flags];
const exec = (
  command: readonly string[],
  more: Readonly<Record<string, string>> = {},
  options: readonly string[] = [],
) => runBridge(['exec', ...options, '--', ...command], { cwd: dir, env: { ...env(), ...more } });
const logIn = (folder: string) => readFileSync(join(folder, 'runs', traceId, 'telemetry.jsonl'), 'utf8');
const runIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'runs', traceId, 'run.json'), 'utf8'));
const DONE = { exitCode: 0, stdout: '', stderr: '' };

/** Records without what only JSONL carries, in any order. */
function comparable(text: string, type: string): readonly string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter((record) => record.record_type === type)
    .map(({ event_id: _id, ...record }) => {
      const { line: _line, file: _file, ...attributes } = record.attributes;
      return JSON.stringify({ ...record, attributes });
    })
    .sort();
}

describe('a command alone', () => {
  test("leaves the engine's JSONL, byte for byte, and the resource that came over OTLP", async () => {
    expect(await exec(engine())).toEqual(DONE);
    expect(logIn(data)).toBe(jsonl);
    const run = runIn(data);
    expect(run.state).toBe('finished');
    expect(run.resource.attributes).toMatchObject({ 'service.name': 'dbt-core' });
    expect(existsSync(join(data, 'runs', traceId, 'telemetry.parquet'))).toBe(true);
  });

  test('works without OTLP: the resource then has what is known', async () => {
    expect(await exec(engine('--no-otlp'), { OTEL_RESOURCE_ATTRIBUTES: 'team=shop' })).toEqual(DONE);
    expect(logIn(data)).toBe(jsonl);
    const { attributes } = runIn(data).resource;
    expect(attributes).toMatchObject({ team: 'shop', 'service.version': '2.0.0-alpha.4' });
    expect(attributes['run_bridge.step.id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('does without JSONL: OTLP is all there is', async () => {
    expect(await exec(engine('--no-file'))).toEqual(DONE);
    for (const type of ['SpanEnd', 'LogRecord']) expect(comparable(logIn(data), type)).toEqual(comparable(jsonl, type));
  });

  test('appends OTLP as it comes where no JSONL appears', async () => {
    const command = engine('--no-file', '--stay');
    const child = spawn(process.execPath, [main, 'exec', '--', ...command], { cwd: dir, env: env() });
    const ended = new Promise((resolve) => child.once('close', resolve));
    try {
      await until('the record log', () => existsSync(join(data, 'runs', traceId, 'telemetry.jsonl')));
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });

  test("follows the user's own file from where it ends", async () => {
    const file = join(dir, 'mine.jsonl');
    writeFileSync(file, `${readFileSync(join(samples, 'parse', 'otel.jsonl'), 'utf8')}`);
    expect(await exec(engine(), { DBT_OTEL_FILE_NAME: file })).toEqual(DONE);
    expect(traceIdsIn(data)).toEqual([traceId]);
    expect(logIn(data)).toBe(jsonl);
  });

  test("sends to the user's own endpoint, before it ends", async () => {
    const receiver = await OtlpReceiver.listen();
    try {
      expect(await exec(engine(), { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })).toEqual(DONE);
      expect(receiver.requests.map(({ signal }) => signal)).toContain('traces');
    } finally {
      receiver.close();
    }
  });

  test('waits for a destination no longer than --flush-timeout, and says what is left', async () => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
    const { exitCode, stderr } = await exec(engine(), endpoint, ['--flush-timeout', '300ms']);
    expect(exitCode).toBe(0);
    expect(stderr).toBe('run-bridge: not everything is exported yet; the next start of run-bridge continues\n');
    expect(logIn(data)).toBe(jsonl);
  });

  test('waits for another command at work in the same data folder', async () => {
    const command = engine('--stay');
    const other = spawn(process.execPath, [main, 'exec', '--', ...command], { cwd: dir, env: env() });
    const ended = new Promise((resolve) => other.once('close', resolve));
    await until('the first command', () => existsSync(join(data, 'runs', traceId, 'telemetry.jsonl')));
    const parse = [process.execPath, standIn, join(samples, 'parse')];
    const second = exec(['sh', '-c', `${parse.join(' ')}; touch done`], {}, ['--flush-timeout', '20s']);
    await until('the second command to be done', () => existsSync(join(dir, 'done')));
    other.kill('SIGTERM');
    await ended;
    expect(await second).toEqual(DONE);
    expect(traceIdsIn(data)).toHaveLength(2);
  });

  test('leaves nothing unread when its own process is killed: the next start takes it in', async () => {
    const command = engine('--slow', '5', '--stay');
    const child = spawn(process.execPath, [main, 'exec', '--', ...command], { cwd: dir, env: env() });
    const ended = new Promise((resolve) => child.once('close', resolve));
    await until('its folder', () => existsSync(join(data, 'spool')) && readdirSync(join(data, 'spool')).length === 1);
    const [name = ''] = readdirSync(join(data, 'spool'));
    const file = join(data, 'spool', name, 'otel.jsonl');
    await until('its lock', () => existsSync(join(data, 'spool', name, 'lock.db')));
    await until('the engine to begin', () => existsSync(file));
    const engineId = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')[0]);
    child.kill('SIGKILL');
    await until('the engine to write on', () => readFileSync(file, 'utf8').length === jsonl.length);
    process.kill(engineId);
    await ended;

    expect(await exec(['true'])).toEqual(DONE);
    await until('the rest', async () => {
      const isThere = existsSync(join(data, 'runs', traceId, 'telemetry.jsonl'));
      if (isThere && logIn(data).length === jsonl.length) return true;
      await exec(['sleep', '1']);
      return false;
    });
    expect(logIn(data)).toBe(jsonl);
    expect(readdirSync(join(data, 'spool'))).toEqual([]);
  });
});

describe('exec inside exec', () => {
  const inner = (command: readonly string[], ...options: readonly string[]) => [
    ...[process.execPath, main, 'exec', ...options, '--'],
    ...command,
  ];

  test('leaves the telemetry to the outer one: nobody waits, every record is there once, in one step', async () => {
    // Whoever waited in vain would wait for a flush that outlasts the test.
    expect(await exec(['sh', '-c', inner(engine(), '--flush-timeout', '10m').join(' ')])).toEqual(DONE);
    expect(logIn(data)).toBe(jsonl);
    expect(traceIdsIn(data)).toEqual([traceId]);
    expect(readdirSync(join(data, 'spool'))).toEqual([]);
  });

  test('passes on the exit code, also three deep, and says which options it does not heed', async () => {
    const command = inner(inner(['sh', '-c', 'echo out; exit 7']), '--job', 'mine', '--last', '--summary');
    expect(await exec(command)).toEqual({
      exitCode: 7,
      stdout: 'out\n',
      stderr:
        'run-bridge: --job, --last not heeded: another run-bridge exec runs this one and keeps its telemetry; say it there\n',
    });
  });

  test('does its work itself where the outer one has died', async () => {
    const dead = 'http://127.0.0.1:9';
    expect(
      await exec(engine(), { RUN_BRIDGE_EXEC: dead, OTEL_EXPORTER_OTLP_ENDPOINT: dead }, [
        '--quiet',
        '--flush-timeout',
        '1s',
      ]),
    ).toEqual(DONE);
    expect(logIn(data)).toBe(jsonl);
  });
});

describe('--span', () => {
  const spanIn = () => {
    const [name = ''] = readdirSync(join(data, 'foreign'));
    const text = readFileSync(join(data, 'foreign', name), 'utf8');
    const [span] = JSON.parse(text.split('\n')[0] ?? '').resourceSpans[0].scopeSpans[0].spans;
    const values = span.attributes.map((one: { key: string; value: object }) => [one.key, Object.values(one.value)[0]]);
    return { ...span, attributes: Object.fromEntries(values) };
  };

  test("adds the command's own span below the caller's, which the command gets", async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const more = { TRACEPARENT: `00-${trace}-00f067aa0ba902b7-01`, TRACESTATE: 'a=1' };
    const { exitCode, stdout } = await exec(['sh', '-c', 'env; exit 3'], more, ['--span']);
    expect(exitCode).toBe(3);
    const span = spanIn();
    expect(span).toMatchObject({
      traceId: trace,
      parentSpanId: '00f067aa0ba902b7',
      traceState: 'a=1',
      name: 'exec sh',
    });
    expect(span.attributes['process.exit.code']).toBe('3');
    expect(span.status).toEqual({ code: 2, message: 'exit code 3' });
    expect(stdout).toContain(`TRACEPARENT=00-${trace}-${span.spanId}-01\n`);
    expect(stdout).toContain(`DBT_PARENT_SPAN_ID=${span.spanId}\n`);
    expect(stdout).toContain('DBT_INVOCATION_ID=4bf92f35-77b3-4da6-a3ce-929d0e0e4736\n');
  });

  test.skipIf(process.platform !== 'linux')('says what the command took', async () => {
    // By its own processor time: where others take the processors, wall-clock says nothing.
    const busy = 'while (process.cpuUsage().user < 300_000);';
    await exec([process.execPath, '-e', busy], {}, ['--span']);
    const { attributes } = spanIn();
    expect(attributes['run_bridge.command.cpu_seconds']).toBeGreaterThanOrEqual(0.3);
    expect(Number(attributes['run_bridge.command.peak_memory_bytes'])).toBeGreaterThan(10_000_000);
  });
});

describe('a command whose bridge runs', () => {
  let bridge: BridgeProcess;
  beforeEach(async () => {
    bridge = await BridgeProcess.start();
  });
  afterEach(() => bridge.remove());

  const expectHandedOver = async () => {
    await until('the run', () => existsSync(join(bridge.dataFolder, 'runs', traceId, 'run.json')));
    const log = logIn(bridge.dataFolder);
    const theirs = jsonl.trimEnd().split('\n').sort();
    expect(log.trimEnd().split('\n').sort()).toEqual(theirs);
  };

  test('hands over to it by --to, in another folder', async () => {
    expect(await exec(engine('--no-otlp'), {}, ['--to', bridge.otlpUrl, '--job', 'nightly'])).toEqual(DONE);
    await expectHandedOver();
    await until('the job', () => runIn(bridge.dataFolder).job?.name === 'nightly');
    expect(existsSync(join(data, 'runs'))).toBe(false);
  });

  test('hands over to the one that holds the data folder', async () => {
    expect(await exec(engine(), { RUN_BRIDGE_DATA_DIR: bridge.dataFolder })).toEqual(DONE);
    await expectHandedOver();
  });

  test("hands over to the user's own endpoint, where it is one", async () => {
    expect(await exec(engine(), { OTEL_EXPORTER_OTLP_ENDPOINT: bridge.otlpUrl })).toEqual(DONE);
    await expectHandedOver();
  });

  describe('and that does not export to where the command would have sent', () => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:secret@127.0.0.1:9/path' };
    const line = new RegExp(
      '^run-bridge: OTEL_EXPORTER_OTLP_ENDPOINT .http://127.0.0.1:9. gets nothing of this: the run-bridge at ' +
        'http://127.0.0.1:[0-9]+ took it and does not export there; [^\\n]*--data-dir of its own\\n$',
    );

    test.each([
      ['by --to', () => exec(engine(), endpoint, ['--to', bridge.otlpUrl])],
      ['by the data folder', () => exec(engine(), { ...endpoint, RUN_BRIDGE_DATA_DIR: bridge.dataFolder })],
    ])('says so, and what to do: handed over %s', async (_how, run) => {
      expect(await run()).toEqual({ ...DONE, stderr: expect.stringMatching(line) });
      await expectHandedOver();
    });

    test('says nothing of a command that had no telemetry', async () => {
      expect(await exec(['true'], endpoint, ['--to', bridge.otlpUrl])).toEqual(DONE);
    });

    test('says nothing where the bridge exports there, too', async () => {
      const theirs = await BridgeProcess.start({ env: endpoint });
      try {
        expect(await exec(engine(), endpoint, ['--to', theirs.otlpUrl])).toEqual(DONE);
      } finally {
        await theirs.remove();
      }
    });
  });

  test('loses nothing when it dies meanwhile: what is left goes to the next', async () => {
    const options = ['--to', bridge.otlpUrl, '--flush-timeout', '1s'];
    const command = engine('--slow', '3');
    const running = exec(command, {}, options);
    await until('the first records', () => existsSync(join(bridge.dataFolder, 'runs', traceId, 'telemetry.jsonl')));
    const url = new URL(bridge.otlpUrl);
    bridge.child.kill('SIGKILL');
    const { exitCode, stderr } = await running;
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/cannot be reached.*left in .*spool.*the next exec --to/);
    expect(stderr.trim().split('\n')).toHaveLength(1);

    const args = ['--http', url.host];
    const next = await BridgeProcess.start({ dataFolder: bridge.dataFolder, args });
    try {
      await until('the spool to be empty', async () => {
        expect((await exec(['sleep', '1'], {}, options)).stderr).toBe('');
        return readdirSync(join(data, 'spool')).length === 0;
      });
      await expectHandedOver();
    } finally {
      await next.remove();
    }
  });
});
