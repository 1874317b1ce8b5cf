import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { MountedFolder } from '../tool/mounted-folder.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const sample = readFileSync(new URL('../fixture/samples/build-mixed/otel.jsonl', import.meta.url));

let dir: string;
const commands: SpawnedCommand[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-pipe-'));
});
afterEach(async () => {
  for (const command of commands.splice(0)) await command.stop('SIGKILL');
  rmSync(dir, { recursive: true });
});

const data = () => join(dir, 'data');
const pipe = (...args: string[]) => {
  const command = new SpawnedCommand(['pipe', '--data-dir', data(), ...args], { cwd: dir });
  commands.push(command);
  return command;
};
const runFolder = (folder = data()) => {
  const [traceId = ''] = traceIdsIn(folder);
  return join(folder, 'runs', traceId);
};
const recorded = (folder?: string) => readFileSync(join(runFolder(folder), 'telemetry.jsonl'));
const sorted = (jsonl: Buffer) => jsonl.toString().split('\n').sort();

describe('pipe', () => {
  test('keeps the records, passes on the rest, and has judged the run when it ends', async () => {
    const command = pipe();
    command.child.stdin.write('before\n');
    // What is no record does not wait for anything.
    await until('the first line', () => command.stdout.toString() === 'before\n');
    command.child.stdin.end(Buffer.concat([sample, Buffer.from('after \xff\x00', 'latin1')]));
    expect(await command.ended()).toBe(0);
    expect(command.stdout).toEqual(Buffer.from('before\nafter \xff\x00', 'latin1'));
    expect(recorded()).toEqual(sample);
    const run = JSON.parse(readFileSync(join(runFolder(), 'run.json'), 'utf8'));
    expect(run).toMatchObject({ state: 'finished', steps: [{ verdict: 'error', parquet_file: 'telemetry.parquet' }] });
    expect(existsSync(join(runFolder(), 'telemetry.parquet'))).toBe(true);
  });

  test('passes on everything with --tee', async () => {
    const command = pipe('--tee');
    const all = Buffer.concat([Buffer.from('text\n'), sample, Buffer.from('{"record_type":"SpanEnd"')]);
    command.child.stdin.end(all);
    expect(await command.ended()).toBe(3);
    expect(command.stdout.equals(all)).toBe(true);
    expect(recorded()).toEqual(sample);
    expect(readFileSync(join(data(), 'rejects.jsonl'), 'utf8')).toContain('"file":"standard input"');
  });

  test('reads on to the end when it is interrupted together with the engine', async () => {
    const command = pipe();
    command.child.stdin.write(sample.subarray(0, 100_000));
    await until('some records', () => existsSync(join(runFolder(), 'telemetry.jsonl')));
    command.child.kill('SIGINT');
    command.child.stdin.write('still here\n');
    await until('a line', () => command.stdout.includes('still here'));
    command.child.stdin.end(sample.subarray(100_000));
    expect(await command.ended()).toBe(3);
    // The line that was torn by the text is kept as a reject, and the rest is there.
    expect(sorted(recorded()).length).toBe(sorted(sample).length - 1);
  });

  test('ends at once by a second SIGTERM', async () => {
    const command = pipe();
    command.child.stdin.write('here\n');
    await until('a line', () => command.stdout.includes('here'));
    const ended = command.stop();
    await until('the end', async () => {
      // As long as it takes until one is not taken for the same as the first.
      command.child.kill('SIGTERM');
      return command.child.signalCode !== null || command.child.exitCode !== null;
    });
    await ended;
    expect(command.child.signalCode).toBe('SIGTERM');
  });

  test('goes on keeping when nobody reads what it passes on', async () => {
    const main = new URL('../../dist/main.js', import.meta.url).pathname;
    writeFileSync(join(dir, 'in.jsonl'), Buffer.concat([Buffer.from('x\n'.repeat(200_000)), sample]));
    const line = `cat in.jsonl | ${process.execPath} ${main} pipe --tee --data-dir data --log-level error | head -1`;
    execFileSync('sh', ['-c', line], { cwd: dir, stdio: ['ignore', 'ignore', 'ignore'] });
    expect(recorded()).toEqual(sample);
  });

  test('hands the records to the bridge that has the data folder', async () => {
    const bridge = await BridgeProcess.start({ dataFolder: data() });
    try {
      const command = pipe();
      command.child.stdin.end(sample);
      expect(await command.ended()).toBe(0);
      expect(command.stderr).toContain(`sent to ${bridge.otlpUrl}: 694 records`);
      expect(sorted(recorded())).toEqual(sorted(sample));
    } finally {
      await bridge.stop('SIGKILL');
    }
  });

  test('waits a while for another that has the data folder and does not listen', async () => {
    const first = pipe();
    first.child.stdin.write(sample.subarray(0, 100_000));
    await until('some records', () => existsSync(join(runFolder(), 'telemetry.jsonl')));
    const second = pipe();
    second.child.stdin.end(sample);
    second.child.stdin.on('close', () => first.child.stdin.end());
    expect([await first.ended(), await second.ended()]).toEqual([3, 0]);
    expect(sorted(recorded())).toEqual(sorted(sample));
  });

  test('passes the records on and succeeds when they cannot be kept', async () => {
    writeFileSync(data(), 'a file is in the place of the folder');
    const command = pipe();
    command.child.stdin.end(sample);
    expect(await command.ended()).toBe(0);
    expect(command.stdout.equals(sample)).toBe(true);
    expect(command.stderr).toMatch(/^run-bridge: the records are not kept, and passed on from here on: .*\n$/);
  });

  test('passes on everything when its configuration is wrong, and says so with exit code 2', async () => {
    writeFileSync(join(dir, 'run-bridge.yaml'), 'parquet: maybe\n');
    const command = pipe();
    command.child.stdin.end(sample);
    expect(await command.ended()).toBe(2);
    expect(command.stdout.equals(sample)).toBe(true);
    expect(command.stderr).toMatch(/parquet.*nothing more is recorded, everything is passed on/);
  });
});

const mounted = MountedFolder.mount(16);
afterAll(() => mounted?.remove());

test.skipIf(mounted === undefined)('a disk that is full costs the records, not the pipeline', async () => {
  const path = mounted?.path ?? '';
  mkdirSync(join(path, 'data'));
  const args = ['pipe', '--data-dir', join(path, 'data'), '--disk-reserve', '15MiB', '--log-level', 'silent'];
  const command = new SpawnedCommand(args, { cwd: dir });
  commands.push(command);
  writeFileSync(join(path, 'filler'), Buffer.alloc(4 * 2 ** 20));
  command.child.stdin.end(sample);
  expect(await command.ended()).toBe(0);
  expect(command.stdout.equals(sample)).toBe(true);
  expect(command.stderr).toMatch(/not kept, and passed on from here on: The disk of .* is nearly full/);
});
