import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Server } from '../../src/app.js';
import { resolveConfiguration } from '../../src/config/resolve-configuration.js';
import { systemMachine } from '../../src/core/guard.js';
import { JumpingClock } from '../fake/jumping-clock.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { RecordingLogger } from '../fake/recording-logger.js';
import { compileSource } from '../tool/compiled-source.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';

/** Exports are a thread of their own, which runs compiled sources. */
let compiled: string;
beforeAll(async () => {
  compiled = await compileSource('app');
});
afterAll(() => rmSync(compiled, { recursive: true, force: true }));

let dataFolder: string;
let clock: JumpingClock;
let destination: OtlpReceiver;
let logger: RecordingLogger;
let server: Server | undefined;

beforeEach(async () => {
  dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-clock-'));
  clock = new JumpingClock();
  destination = await OtlpReceiver.listen();
  logger = new RecordingLogger();
});

afterEach(async () => {
  await end();
  destination.close();
  rmSync(dataFolder, { recursive: true, force: true });
});

async function start(): Promise<Server> {
  const sources = {
    flags: { http: '127.0.0.1:0', grpc: 'off', web: '127.0.0.1:0', 'data-dir': dataFolder },
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: destination.url },
    workingDir: dataFolder,
    homeDir: dataFolder,
    maxMemoryBytes: 2 ** 30,
  };
  const { configuration } = resolveConfiguration(sources, undefined);
  const process = { machine: systemMachine, stdout: new PassThrough(), pid: 1, ownHosts: [], random: () => 0.5 };
  const own = { environment: {}, nodePath: 'node', nodeVersion: '20.0.0', entryPath: 'main.js' };
  const program: typeof import('../../src/app.js') = await import(join(compiled, 'app.js'));
  server = await program.openServer(configuration, { ...process, ...own, clock, logger, version: '0' });
  await server.program.start();
  return server;
}

async function end(): Promise<void> {
  await server?.program.shutdown(AbortSignal.timeout(5_000));
  server = undefined;
}

async function send(url: string, afterEach?: () => void): Promise<SentRun> {
  const run = new SentRun();
  for (const answer of await run.send(url, afterEach)) expect(answer).toMatchObject({ status: 200 });
  return run;
}

/** Waits until a run's files are written and all of its spans are exported. */
async function untilDone(run: SentRun): Promise<void> {
  const folder = join(dataFolder, 'runs', run.traceId);
  await until('the files', () => readdirSync(folder).includes('telemetry.parquet'));
  expect(run.compare(folder)).toEqual({ missingCount: 0, addedCount: 0 });
  const { steps } = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
  expect(steps).toMatchObject([{ verdict: 'success' }]);
  const id = Buffer.from(run.traceId, 'hex');
  await until('the export', () => destination.requests.some(({ body, answer }) => !answer.status && body.includes(id)));
}

describe.each([
  ['forwards', 10_000],
  ['backwards', -10_000],
])('a clock that jumps %s by a year', (_name, byHours) => {
  test('in the midst of a run changes nothing about it', async () => {
    const { otlpUrl } = (await start()).ports;
    await untilDone(await send(otlpUrl, () => clock.jump(byHours)));
    expect(logger.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });
});

describe.each([
  ['forwards', 10_000],
  ['backwards', -10_000],
])('a clock that jumps %s by a year', (_name, byHours) => {
  test('loses no export of a destination that is down meanwhile', async () => {
    const { otlpUrl } = (await start()).ports;
    destination.answer = () => ({ status: 503, headers: { 'retry-after': '1' } });
    const before = await send(otlpUrl);
    clock.jump(byHours);
    const after = await send(otlpUrl);
    destination.answer = () => ({});
    await untilDone(before);
    await untilDone(after);
  });

  test('loses no export over a restart', async () => {
    destination.answer = () => ({ status: 503, headers: { 'retry-after': '1' } });
    const { otlpUrl } = (await start()).ports;
    const before = await send(otlpUrl);
    clock.jump(byHours);
    const after = await send(otlpUrl);
    await end();
    clock.jump(-byHours);
    destination.answer = () => ({});
    await start();
    await untilDone(before);
    await untilDone(after);
  });
});
