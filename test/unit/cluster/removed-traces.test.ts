import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TelemetryBucket } from '../../../src/cluster/bucket/telemetry-bucket.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { Removals } from '../../../src/retention/removals.js';
import { NO_LOCK, RetainedTelemetry } from '../../../src/retention/retained-kinds.js';
import { type SweepResult, sweepKind } from '../../../src/retention/sweep.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { type BenchProcess, BuilderBench } from '../../fake/builder-bench.js';
import { noteOf, rowOf } from '../../fake/noted-run.js';
import { sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';

const ENDED_UNIX_MS = 1_000;

let bench: BuilderBench;
let first: BenchProcess;
let second: BenchProcess;
let all: readonly Delivery[];
let traceId: TraceId;
let runId: number;
beforeEach(async () => {
  bench = await BuilderBench.open();
  [first, second] = [await bench.startProcess(), await bench.startProcess()];
  all = [...sampleDeliveriesOfRecords('build-mixed')];
  traceId = all.flatMap(({ batches }) => batches)[0]?.traceId as TraceId;
  await first.begin(1);
  for (const delivery of all) await first.read(delivery);
  await bench.state.runs.save([rowOf(traceId, ENDED_UNIX_MS)]);
  await bench.state.invocations.note([noteOf(traceId, ENDED_UNIX_MS)], ENDED_UNIX_MS);
  [runId = 0] = await bench.state.traces.runsOf(FIRST_ACCOUNT_ID, traceId);
});
afterEach(() => bench.close());

const openArtifacts = async () => ({
  usage: async () => ({ count: 0, sizeBytes: 0 }),
  removeRun: async () => ({ count: 0, sizeBytes: 0 }),
});

function removals(): Removals {
  const { state, bucket } = bench;
  const place = new TelemetryBucket({ openBucket: async () => bucket, traces: state.journal });
  return new Removals({ store: state.retention, storage: place, openArtifacts });
}

/** Removes every run that may be removed. */
function sweep(): Promise<SweepResult> {
  const { state, bucket, clock } = bench;
  const kind = new RetainedTelemetry(
    { maxAgeMs: 1, maxBytes: null },
    {
      ...{ store: state.retention, removals: removals(), destinations: [], openArtifacts },
      storage: new TelemetryBucket({ openBucket: async () => bucket, traces: state.journal }),
      lock: NO_LOCK,
      nowUnixMs: () => clock.nowUnixMs(),
    },
  );
  return sweepKind(kind, { nowUnixMs: clock.nowUnixMs(), isDry: false, signal: new AbortController().signal });
}

/** Ends the trace, and lets its owner store it and release it. */
async function letGo(): Promise<void> {
  for (const { followed } of [first, second]) followed.areSettled = true;
  await bench.until('the end', async () => (await bench.state.journal.listOpen(first.processId)).length === 0);
  await bench.until('the drop', () =>
    [first, second].every(({ builder }) => builder.lengthBytes(traceId) === undefined),
  );
}

describe('traces that processes share', () => {
  it('are not removed while one of them has them', async () => {
    expect(await sweep()).toMatchObject({ count: 0 });
    expect(first.builder.lengthBytes(traceId)).toBeGreaterThan(0);
    expect(await bench.state.catalog.findRun(FIRST_ACCOUNT_ID, runId)).toBeDefined();
  });

  it('are gone for all of them when they were removed, files, rows and notes', async () => {
    await letGo();
    expect(await second.reader.lengthBytes(traceId)).toBeGreaterThan(10_000);
    const [files] = [await bench.state.journal.usage()];
    expect(await sweep()).toEqual({ kind: 'telemetry', count: 1, ...files, excessBytes: 0 });
    bench.clock.advance(1_000);
    expect(await second.reader.lengthBytes(traceId)).toBe(0);
    expect(await bench.bucket.list('runs/')).toEqual([]);
    expect(await bench.state.retention.listRemovals()).toEqual([]);
    expect((await bench.state.journal.known([traceId])).size).toBe(0);
    expect(await bench.state.runs.find(traceId)).toBeUndefined();
    expect(await bench.state.catalog.findRun(FIRST_ACCOUNT_ID, runId)).toBeUndefined();
  });

  it('begin anew with what comes after that, also for a process with a copy of what they were', async () => {
    await letGo();
    const before = await second.reader.lengthBytes(traceId);
    await sweep();
    first.followed.areSettled = false;
    const [delivery] = all;
    if (delivery !== undefined) await first.read(delivery);
    await first.builder.store(traceId, false);
    bench.clock.advance(1_000);
    const after = await second.reader.lengthBytes(traceId);
    expect(after).toBeLessThan(before);
    expect(first.builder.lengthBytes(traceId)).toBe(after);
  });

  it('leave no copies on any disk', async () => {
    await letGo();
    const copy = join(second.folder, 'copies', 'logs', 'runs', traceId);
    await second.reader.lengthBytes(traceId);
    expect(existsSync(copy)).toBe(true);
    let turns = 0;
    bench.clock.advance(60_000);
    await bench.until('a look', () => ++turns > 100);
    expect(existsSync(copy)).toBe(true);
    await sweep();
    bench.clock.advance(60_000);
    await bench.until('the removal', () => !existsSync(copy));
  });

  it('are not left half by a process that dies after it has removed their rows', async () => {
    await letGo();
    await bench.bucket.put(`runs/${traceId}/dead-1/telemetry.parquet`, Buffer.from('x'));
    const { retention } = bench.state;
    const group = await retention.groupOf(runId, []);
    expect(group && (await retention.removeRuns(group, [], 1))).toHaveLength(4);
    expect(await bench.bucket.list('runs/')).toHaveLength(3);
    const another = removals();
    await another.hideLeftovers();
    for (const removal of await another.left()) await another.end(removal);
    expect(await bench.bucket.list('runs/')).toEqual([]);
    expect(await retention.listRemovals()).toEqual([]);
  });

  it('keep what came after a process died that has removed their rows', async () => {
    await letGo();
    const { retention, journal } = bench.state;
    const group = await retention.groupOf(runId, []);
    const removed = (group && (await retention.removeRuns(group, [], 1))) ?? [];
    for (const { followed } of [first, second]) followed.areSettled = false;
    for (const delivery of all) await first.read(delivery);
    await letGo();
    const files = (await journal.filesOf(traceId)).map(({ objectKey }) => objectKey).sort();
    const another = removals();
    await another.hideLeftovers();
    for (const removal of await another.left()) await another.end(removal);
    expect(removed.filter(({ kind }) => kind === 'object')).toHaveLength(2);
    expect(await bench.bucket.list('runs/')).toEqual(files);
    expect(files).toHaveLength(2);
  });
});
