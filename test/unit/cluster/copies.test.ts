import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Copies } from '../../../src/cluster/bucket/copies.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { traceIdOf } from '../../fake/memory-record-log.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { until } from '../../tool/until.js';

const RUN = traceIdOf(1);
const OTHERS = [traceIdOf(2), traceIdOf(3)];
const FILE = { name: 'telemetry.parquet', objectKey: 'key', sizeBytes: 4 };

let folder: string;
let content: () => Readable;
let openCount = 0;
let known: Set<TraceId>;
let clock: FakeClock;
let copies: Copies;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-copies-'));
  content = () => Readable.from([Buffer.from('PAR1')]);
  openCount = 0;
  known = new Set([RUN, ...OTHERS]);
  clock = new FakeClock();
  copies = new Copies(
    {
      bucket: {
        async open() {
          openCount += 1;
          return content();
        },
        get: async () => undefined,
      },
      journal: { filesOf: async () => [FILE], latestFiles: async () => [], known: async () => known },
      folder,
      localReader: new RecordLogFiles(folder, () => {}),
      isLocal: () => false,
      onDamage: () => {},
      clock,
      logger: new RecordingLogger(),
    },
    2 * FILE.sizeBytes,
  );
});
afterEach(async () => {
  await copies.shutdown();
  rmSync(folder, { recursive: true, force: true });
});

const pathOf = (traceId: TraceId) => join(folder, 'files', 'runs', traceId, FILE.name);
/** Lets the time pass until it is looked which copies can go, and waits until that is done. */
async function look(): Promise<void> {
  clock.advance(30_000);
  await until('the next look', () => clock.nextTimerMs !== undefined);
}
const areThere = () => [RUN, ...OTHERS].map((traceId) => existsSync(pathOf(traceId)));

it('copies a file from the bucket, once', async () => {
  const copy = await copies.find(RUN, FILE.name);
  expect(readFileSync(copy?.path ?? '', 'utf8')).toBe('PAR1');
  expect(await copies.find(RUN, FILE.name)).toEqual(copy);
  expect(openCount).toBe(1);
});

it('fails the copy alone when the connection breaks off before anything is read', async () => {
  content = () => {
    const broken = new Readable({ read() {} });
    setImmediate(() => broken.destroy(new Error('reset')));
    return broken;
  };
  await expect(copies.find(RUN, FILE.name)).rejects.toThrow('reset');
  expect(existsSync(pathOf(RUN))).toBe(false);
});

it('asks the bucket for nothing when there is no place for the copy', async () => {
  writeFileSync(join(folder, 'files'), 'a file');
  await expect(copies.find(RUN, FILE.name)).rejects.toThrow('ENOTDIR');
  expect(openCount).toBe(0);
});

it('removes the copies used longest ago when there is no room for all, and none that may be being read', async () => {
  await copies.start();
  for (const traceId of [RUN, ...OTHERS]) await copies.find(traceId, FILE.name);
  await look();
  expect(areThere()).toEqual([true, true, true]);
  await look();
  await copies.find(RUN, FILE.name);
  for (let turn = 0; turn < 3; turn += 1) await look();
  expect(areThere()).toEqual([true, false, true]);
  await copies.find(traceIdOf(2), FILE.name);
  expect(readFileSync(pathOf(traceIdOf(2)), 'utf8')).toBe('PAR1');
});

it('removes the copies of traces that are no more', async () => {
  await copies.start();
  for (const traceId of [...OTHERS, RUN]) await copies.find(traceId, FILE.name);
  known = new Set([RUN]);
  for (let turn = 0; turn < 5; turn += 1) await look();
  expect(areThere()).toEqual([true, false, false]);
});
