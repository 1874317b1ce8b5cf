import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ParquetThread } from '../../../src/parquet/parquet-thread.js';
import type { ParquetJob } from '../../../src/parquet/run-parquet.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { SAMPLES, sampleLines, sampleTraceId } from '../../fake/sample-run.js';
import { compileSource } from '../../tool/compiled-source.js';
import { until } from '../../tool/until.js';
import { rowsOf } from '../../unit/parquet/samples.js';

let compiled = '';
let dataFolder: string;
let clock: FakeClock;
let logger: RecordingLogger;
let thread: ParquetThread;

beforeAll(async () => {
  compiled = await compileSource('parquet/parquet-thread-main');
});
afterAll(() => rmSync(compiled, { recursive: true }));

beforeEach(() => {
  dataFolder = mkdtempSync(join(tmpdir(), 'parquet-thread-'));
  clock = new FakeClock();
  logger = new RecordingLogger();
  thread = withProgram(join(compiled, 'parquet', 'parquet-thread-main.js'));
});
afterEach(async () => {
  await thread.shutdown();
  rmSync(dataFolder, { recursive: true });
});

function withProgram(path: string): ParquetThread {
  return new ParquetThread({ dataFolder }, { entry: pathToFileURL(path), clock, logger });
}

/** A sample's record log in the data folder, and what is to be written of it. */
function jobOf(sample: string, ending = ''): ParquetJob & { readonly folder: string } {
  const traceId = sampleTraceId(sample);
  const folder = join(dataFolder, 'runs', traceId);
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(SAMPLES, sample, 'otel.jsonl'), join(folder, 'telemetry.jsonl'));
  writeFileSync(join(folder, 'telemetry.jsonl'), ending, { flag: 'a' });
  const logBytes = readFileSync(join(folder, 'telemetry.jsonl')).length;
  const files = [{ index: 1, parquetFile: 'telemetry.parquet' }];
  return { traceId, logBytes, invocationCount: 1, files, folder };
}

async function rowCount({ folder }: { readonly folder: string }, file = 'telemetry.parquet'): Promise<number> {
  return (await rowsOf(join(folder, file))).length;
}

it('writes runs one after the other', async () => {
  for (const sample of ['build-clean', 'parse']) {
    const job = jobOf(sample);
    await thread.write(job);
    expect(await rowCount(job)).toBe(sampleLines(sample).length);
  }
});

it('writes each of two commands of a trace its own file', async () => {
  const names = ['telemetry.parquet', 'telemetry-2.parquet'];
  const files = names.map((parquetFile, position) => ({ index: position + 1, parquetFile }));
  const job = { ...jobOf('overlapping'), invocationCount: 2, files };
  await thread.write(job);
  const counts = await Promise.all(names.map((name) => rowCount(job, name)));
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(sampleLines('overlapping').length);
});

it('tells of lines that are no records', async () => {
  await thread.write(jobOf('parse', '{"record_type":\n'));
  expect(logger.lines).toMatchObject([
    { level: 'warn', fields: { traceId: sampleTraceId('parse'), line: sampleLines('parse').length + 1 } },
  ]);
});

it('says why a file could not be written, leaves nothing of it, and writes the next', async () => {
  const { folder, ...job } = jobOf('parse');
  const files = [{ index: 1, parquetFile: 'nowhere/telemetry.parquet' }];
  await expect(thread.write({ ...job, files })).rejects.toThrow(/ENOENT/);
  expect(readdirSync(folder)).toEqual(['telemetry.jsonl']);
  await thread.write(job);
  expect(await rowCount({ folder })).toBe(sampleLines('parse').length);
});

it('fails the job in which its thread dies, and writes it with another one', async () => {
  const program = join(compiled, 'parquet', 'mortal.js');
  const death = join(dataFolder, 'death');
  writeFileSync(
    program,
    `import { existsSync, writeFileSync } from 'node:fs';
     import { parentPort } from 'node:worker_threads';
     if (existsSync(${JSON.stringify(death)})) await import('./parquet-thread-main.js');
     else parentPort.on('message', () => { writeFileSync(${JSON.stringify(death)}, ''); process.exit(1); });`,
  );
  thread = withProgram(program);
  const job = jobOf('parse');
  await expect(thread.write(job)).rejects.toThrow('the Parquet thread has ended');
  expect(existsSync(death)).toBe(true);
  await thread.write(job);
  expect(await rowCount(job)).toBe(sampleLines('parse').length);
});

it('ends its thread when there was nothing to do for a while, and starts one for the next run', async () => {
  const job = jobOf('parse');
  expect(thread.isRunning).toBe(false);
  await thread.write(job);
  clock.advance(29_000);
  await thread.write(job);
  clock.advance(29_000);
  expect(thread.isRunning).toBe(true);
  clock.advance(1_000);
  await until('the end of the thread', () => !thread.isRunning);
  await thread.write(job);
  expect(await rowCount(job)).toBe(sampleLines('parse').length);
});

it('writes what is small enough without a thread, as the thread does', async () => {
  const job = jobOf('parse', '{"record_type":\n');
  await thread.write(job);
  const path = join(job.folder, 'telemetry.parquet');
  const ofThread = readFileSync(path);
  rmSync(path);
  const entry = pathToFileURL(join(compiled, 'nowhere.js'));
  const own = new ParquetThread({ dataFolder }, { entry, clock, logger, maxOwnBytes: job.logBytes });
  await own.write(job);
  expect(own.isRunning).toBe(false);
  expect(readFileSync(path)).toEqual(ofThread);
  expect(logger.lines[1]).toEqual(logger.lines[0]);
  await expect(own.write({ ...job, logBytes: job.logBytes + 1 })).rejects.toThrow(/nowhere\.js/);
  await own.shutdown();
  await expect(own.write(job)).rejects.toThrow('the program is stopping');
});

it('writes nothing more when the program stops', async () => {
  await thread.shutdown();
  await expect(thread.write(jobOf('parse'))).rejects.toThrow('the program is stopping');
});
