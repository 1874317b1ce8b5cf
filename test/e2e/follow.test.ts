import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { MountedFolder } from '../tool/mounted-folder.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const sample = new URL('../fixture/samples/build-mixed/otel.jsonl', import.meta.url).pathname;
const lines = readFileSync(sample, 'utf8').trimEnd().split('\n');

let dir: string;
const commands: SpawnedCommand[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-follow-'));
});
afterEach(async () => {
  for (const command of commands.splice(0)) await command.stop('SIGKILL');
  rmSync(dir, { recursive: true });
});

const data = () => join(dir, 'data');
const file = (name = 'otel.jsonl') => join(dir, name);
const follow = (...args: string[]) => {
  const command = new SpawnedCommand(['follow', '--data-dir', data(), ...args], { cwd: dir });
  commands.push(command);
  return command;
};
const append = (from: number, to = lines.length, name?: string) =>
  appendFileSync(
    file(name),
    lines
      .slice(from, to)
      .map((line) => `${line}\n`)
      .join(''),
  );

/** The lines of all record logs. */
function recorded(dataFolder = data()): string[] {
  const runs = join(dataFolder, 'runs');
  if (!existsSync(runs)) return [];
  return readdirSync(runs).flatMap((id) => {
    const path = join(runs, id, 'telemetry.jsonl');
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  });
}
const untilRecorded = (count: number, dataFolder?: string) =>
  until(`${count} records`, () => recorded(dataFolder).length >= count);

describe('follow', () => {
  test('takes a file while it is written, judges its run, and goes on after its end where it stopped', async () => {
    const first = follow('otel.jsonl');
    append(0, 100);
    await untilRecorded(100);
    expect(await first.stop('SIGINT')).toBe(0);
    expect(first.stderr).toContain(`taken into ${data()}/runs: 100 records\n`);
    const second = follow('otel.jsonl');
    append(100);
    await untilRecorded(lines.length);
    const [traceId = ''] = traceIdsIn(data());
    await until('the verdict', () => existsSync(join(data(), 'runs', traceId, 'telemetry.parquet')));
    expect(await second.stop()).toBe(0);
    expect(second.stderr).toContain(`: ${lines.length - 100} records\n`);
    expect(recorded()).toEqual(lines);
  });

  test('has every record once after it was killed, wherever that was', async () => {
    append(0, 120);
    const first = follow('otel.jsonl');
    await until('some records', () => recorded().length > 0);
    await first.stop('SIGKILL');
    append(120, 200);
    appendFileSync(file(), (lines[200] ?? '').slice(0, 40));
    const second = follow('otel.jsonl');
    await untilRecorded(200);
    await second.stop('SIGKILL');
    appendFileSync(file(), `${(lines[200] ?? '').slice(40)}\n`);
    append(201);
    const third = follow('otel.jsonl');
    await untilRecorded(lines.length);
    expect(await third.stop()).toBe(0);
    expect(recorded()).toEqual(lines);
  });

  test('follows the files of a folder and of a pattern, also those that come later, and through a rotation', async () => {
    mkdirSync(file('logs'));
    append(0, 50, 'logs/a.jsonl');
    follow('logs', 'other-*.jsonl');
    await untilRecorded(50);
    append(50, 100, 'other-1.jsonl');
    await untilRecorded(100);
    renameSync(file('logs/a.jsonl'), file('logs/a.jsonl.1'));
    append(100, lines.length, 'logs/a.jsonl');
    await untilRecorded(lines.length);
    expect(recorded().sort()).toEqual([...lines].sort());
  });

  test('reads a file that is written anew to the same length, while it follows it and when it comes back', async () => {
    const traceId: string = JSON.parse(lines[0] ?? '').trace_id;
    const runOf = (digit: string) => `${lines.join('\n')}\n`.replaceAll(traceId, digit.repeat(32));
    const first = follow('otel.jsonl');
    for (const [index, digit] of ['a', 'b'].entries()) {
      writeFileSync(file(), runOf(digit));
      await untilRecorded((index + 1) * lines.length);
    }
    expect(await first.stop()).toBe(0);
    writeFileSync(file(), runOf('c'));
    follow('otel.jsonl');
    await untilRecorded(3 * lines.length);
    expect(traceIdsIn(data()).sort()).toEqual(['a', 'b', 'c'].map((digit) => digit.repeat(32)));
    expect(recorded().sort()).toEqual(['a', 'b', 'c'].flatMap((digit) => runOf(digit).trimEnd().split('\n')).sort());
  });

  test('keeps what is no record with its place, and says so at the end', async () => {
    const command = follow('otel.jsonl');
    appendFileSync(file(), `${lines[0]}\n{"record_type":"SpanEnd"}\n`);
    append(1, 3);
    await untilRecorded(3);
    expect(await command.stop()).toBe(3);
    const [reject = ''] = readFileSync(join(data(), 'rejects.jsonl'), 'utf8').split('\n');
    expect(JSON.parse(reject)).toMatchObject({
      file: file(),
      place: 'line 2',
      byte_offset: Buffer.byteLength(`${lines[0]}\n`),
      text: '{"record_type":"SpanEnd"}',
    });
    expect(command.stderr).toContain(`kept in ${data()}/rejects.jsonl`);
  });

  test('hands the records to the bridge that has the data folder, and waits while that is away', async () => {
    let bridge = await BridgeProcess.start({ dataFolder: data() });
    try {
      const command = follow('otel.jsonl');
      append(0, 100);
      // Spans that have not ended are reported, too.
      await untilRecorded(100);
      expect(command.stderr).toContain(`sends to  ${bridge.otlpUrl}\n`);
      const port = new URL(bridge.otlpUrl).port;
      await bridge.stop();
      append(100);
      await until('the waiting', () => command.stderr.includes('the bridge refuses records'));
      bridge = await BridgeProcess.start({ dataFolder: data(), args: ['--http', `127.0.0.1:${port}`] });
      await untilRecorded(lines.length);
      expect(await command.stop()).toBe(0);
      expect(recorded().sort()).toEqual([...lines].sort());
    } finally {
      await bridge.stop('SIGKILL');
    }
  });
});

const mounted = MountedFolder.mount(32);
afterAll(() => mounted?.remove());

test.skipIf(mounted === undefined)('a disk that is nearly full makes it wait, and nothing is passed over', async () => {
  const folder = join(mounted?.path ?? '', 'data');
  const filler = join(mounted?.path ?? '', 'filler');
  mkdirSync(folder);
  writeFileSync(filler, Buffer.alloc(20 * 2 ** 20));
  append(0);
  const command = follow('otel.jsonl', '--data-dir', folder, '--disk-reserve', '16MiB');
  await until('the waiting', () =>
    command.stderr.includes('the data folder has no room for records: requests are answered 503 until it has'),
  );
  expect(recorded(folder)).toEqual([]);
  rmSync(filler);
  await untilRecorded(lines.length, folder);
  expect(await command.stop()).toBe(0);
  expect(recorded(folder)).toEqual(lines);
});

test('a data folder that a program has which does not listen is named with it', async () => {
  const first = follow('otel.jsonl');
  await until('the start', () => first.stderr.includes('follows'));
  const second = follow('other.jsonl');
  expect(await second.ended()).toBe(2);
  expect(second.stderr).toMatch(
    /^run-bridge: .*data is in use by process \d+, which does not listen; wait until it is done, pass another --data-dir, or run run-bridge serve there/,
  );
});
