import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { compatibilityPartitioner } from '@platformatic/kafka';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MisplacedError } from '../../../src/cluster/kafka/kafka-source.js';
import { slices } from '../../../src/core/lists.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { type BenchProcess, BuilderBench } from '../../fake/builder-bench.js';
import { traceIdOf } from '../../fake/memory-record-log.js';
import { sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';

let bench: BuilderBench;
beforeEach(async () => {
  bench = await BuilderBench.open();
});
afterEach(() => bench.close());

/** Records of a run, a few at a time; spans before the log records that wait for their names. */
function deliveries(): readonly Delivery[] {
  const parts = [...sampleDeliveriesOfRecords('build-mixed')].flatMap(({ batches }) =>
    batches.flatMap((batch) =>
      [...slices(batch.records, RECORDS_AT_A_TIME)].map(
        (records): Delivery => ({ batches: [{ ...batch, records }], passthrough: [] }),
      ),
    ),
  );
  return [...parts.filter((part) => !isLog(part)), ...parts.filter(isLog)];
}

const RECORDS_AT_A_TIME = 40;

/** One of the deliveries, from the end where it is negative. */
function at(all: readonly Delivery[], index: number): Delivery {
  const delivery = all.at(index);
  if (delivery === undefined) throw new Error('the sample is too small');
  return delivery;
}

function traceOf(all: readonly Delivery[]): TraceId {
  const traceId = all.find(({ batches }) => batches.length > 0)?.batches[0]?.traceId;
  if (traceId === undefined) throw new Error('the sample is empty');
  return traceId;
}

/** The log of a trace as a process has it. */
const logOf = ({ folder }: BenchProcess, traceId: TraceId, of = '.') =>
  ['telemetry.jsonl', 'resources.jsonl'].map((name) => readFileSync(join(folder, of, 'runs', traceId, name), 'utf8'));

const linesOf = (log: readonly string[]) => (log[0] ?? '').trimEnd().split('\n').sort();

const partitionOf = (traceId: TraceId, count: number) =>
  compatibilityPartitioner({ topic: '' }, Buffer.from(traceId)) % count;
const traceIds = () => Array.from({ length: 20 }, (_, index) => traceIdOf(index + 1));

/** The same records in another run. */
function ofTrace({ batches, passthrough }: Delivery, traceId: TraceId): Delivery {
  const own = batches.map((batch) => ({
    ...batch,
    traceId,
    records: batch.records.map((record) => ({ ...record, traceId })),
  }));
  return { batches: own, passthrough };
}

function isLog({ batches }: Delivery): boolean {
  return batches.some(({ records }) => records.some(({ recordType }) => recordType === 'LogRecord'));
}

describe('a builder', () => {
  it('commits what it has read when it is in the bucket, and not before', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.read(delivery);
    const length = first.builder.lengthBytes(traceId);
    expect(first.builder.status).toMatchObject({ traceCount: 1, unstoredBytes: length, segmentCount: 0 });
    expect([first.committed, first.builder.storedBytes(traceId)]).toEqual([[], 0]);
    bench.bucket.failure = new Error('no space');
    bench.clock.advance(12_000);
    await bench.until('a failure', () => first.logger.lines.some(({ level }) => level === 'warn'));
    expect([first.committed, first.builder.storedBytes(traceId)]).toEqual([[], 0]);
    expect(first.builder.status.oldestUncommittedMs).toBeGreaterThanOrEqual(12_000);
    bench.bucket.failure = undefined;
    await bench.until('the commit', () => first.committed.at(-1) === all.length);
    expect(first.builder.storedBytes(traceId)).toBeGreaterThanOrEqual(length ?? 0);
    expect(first.followed.stored.get(traceId)).toBe(first.builder.storedBytes(traceId));
    const { segmentCount, ...rest } = first.builder.status;
    expect(segmentCount).toBeGreaterThanOrEqual(1);
    expect(rest).toMatchObject({ unstoredBytes: 0, oldestUncommittedMs: 0 });
  });

  it('commits nothing of log records that wait for the name of their span', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const logs = all.filter(isLog).slice(0, 2);
    for (const delivery of logs) await first.read(delivery);
    const traceId = traceOf(all);
    expect(await first.builder.store(traceId, false)).toBe(true);
    bench.clock.advance(1_000);
    await bench.until('a look', () => true);
    expect(first.committed).toEqual([]);
    await bench.until('the commit', () => first.committed.at(-1) === logs.length);
  });

  it('commits nothing of log records that could not be written when their wait was over, and reads them again', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const log = at(all.filter(isLog), 0);
    await first.read(log);
    rmSync(join(first.folder, 'runs', traceId), { recursive: true });
    await bench.until('the failure', () => first.logger.lines.some(({ level }) => level === 'error'));
    const failedMs = first.builder.status.oldestUncommittedMs;
    await bench.until('more looks', () => first.builder.status.oldestUncommittedMs > failedMs + 30_000);
    expect(first.committed).toEqual([]);
    await expect(first.read(log)).rejects.toThrow('read again');
    await first.begin(2);
    await first.read(log);
    await bench.until('the commit', () => first.committed.length > 0);
    expect(linesOf(logOf(first, traceId)).length).toBeGreaterThan(1);
  });

  it('takes a trace over with what is in the bucket, and has each record once when the rest is read again', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const half = Math.floor(all.length / 2);
    for (const delivery of all.slice(0, half)) await first.read(delivery);
    await bench.until('the commit', () => first.committed.at(-1) === half);
    // Two more, of which the bucket has nothing.
    for (const delivery of all.slice(half, half + 2)) await first.read(delivery);
    await first.die();
    await second.begin(2);
    await bench.until('the take-over', () => second.followed.adopted.includes(traceId));
    expect(second.followed.lengths.get(traceId)).toBe(first.builder.storedBytes(traceId));
    const rest = all.slice(half - 1);
    for (const delivery of rest) await second.read(delivery);
    await bench.until('the commit', () => second.committed.at(-1) === rest.length);
    const log = logOf(second, traceId);
    const alone = await bench.startProcess();
    await alone.begin(3);
    await bench.until('the take-over', () => alone.followed.adopted.includes(traceId));
    expect(logOf(alone, traceId)).toEqual(log);
    const lines = linesOf(log);
    expect(new Set(lines).size).toBe(lines.length);
  });

  it('passes over what one wrote that had lost the trace without knowing', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const [begin, next] = [at(all, 0), at(all, 1)];
    const rest = all.slice(2);
    await first.read(begin);
    await first.builder.store(traceId, false);
    await second.begin(2);
    await bench.until('the take-over', () => second.followed.adopted.includes(traceId));
    // It goes on as if nothing had been.
    await first.read(next);
    await first.builder.store(traceId, false);
    for (const delivery of [...rest, next]) await second.read(delivery);
    await second.builder.store(traceId, false);
    const third = await bench.startProcess();
    expect(await third.reader.lengthBytes(traceId)).toBe(second.builder.lengthBytes(traceId));
    expect(logOf(third, traceId, 'copies/logs')).toEqual(logOf(second, traceId));
    await expect(first.begin(1)).rejects.toMatchObject({ code: 'locked' });
  });

  it.each([
    ['a segment', false],
    ['a whole log', true],
  ])('goes on behind %s whose answer was lost, and which another one has read', async (_what, isFinished) => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const [begin, next, last] = [at(all, 0), at(all, 1), at(all, 2)];
    await first.read(begin);
    const { journal } = bench.state;
    const putFiles = journal.putFiles.bind(journal);
    journal.putFiles = async (...args) => {
      await putFiles(...args);
      throw new Error('the connection was lost');
    };
    await expect(first.builder.store(traceId, isFinished)).rejects.toThrow('the connection was lost');
    journal.putFiles = putFiles;
    expect(await second.reader.lengthBytes(traceId)).toBe(first.builder.lengthBytes(traceId));
    await first.read(next);
    expect(await first.builder.store(traceId, false)).toBe(true);
    await first.read(last);
    expect(await first.builder.store(traceId, false)).toBe(true);
    bench.clock.advance(1_000);
    expect(await second.reader.lengthBytes(traceId)).toBe(first.builder.lengthBytes(traceId));
    expect(logOf(second, traceId, 'copies/logs')).toEqual(logOf(first, traceId));
  });

  it('makes a copy of a log anew when it cannot be written to, by whatever is wrong with the folder', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const [begin, next] = [at(all, 0), at(all, 1)];
    await first.read(begin);
    await first.builder.store(traceId, false);
    await second.reader.lengthBytes(traceId);
    rmSync(join(second.folder, 'copies'), { recursive: true });
    await first.read(next);
    await first.builder.store(traceId, false);
    bench.clock.advance(1_000);
    await expect(second.reader.lengthBytes(traceId)).rejects.toThrow('ENOENT');
    expect(await second.reader.lengthBytes(traceId)).toBe(first.builder.lengthBytes(traceId));
    expect(logOf(second, traceId, 'copies/logs')).toEqual(logOf(first, traceId));
  });

  it('gives nobody the copy of a log while it is made anew', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all.slice(0, 3)) await first.read(delivery);
    await first.builder.store(traceId, false);
    const length = await second.reader.lengthBytes(traceId);
    bench.clock.advance(2_000);
    // Between the first and the second one that ask, the run ends.
    const { journal } = bench.state;
    const filesOf = journal.filesOf.bind(journal);
    let askedCount = 0;
    journal.filesOf = async (...args) => {
      askedCount += 1;
      if (askedCount === 2) await first.builder.store(traceId, true);
      return await filesOf(...args);
    };
    const open = bench.bucket.open.bind(bench.bucket);
    let goOn = () => {};
    const opened = new Promise<void>((resolve) => {
      bench.bucket.open = async (key) => {
        resolve();
        await new Promise<void>((go) => (goOn = go));
        return await open(key);
      };
    });
    const [one, two] = [second.reader.lengthBytes(traceId), second.reader.lengthBytes(traceId)];
    expect(await one).toBe(length);
    await Promise.race([two, opened]);
    bench.bucket.open = open;
    expect(await second.reader.lengthBytes(traceId)).toBe(length);
    goOn();
    expect(await two).toBe(length);
    journal.filesOf = filesOf;
    bench.clock.advance(2_000);
    expect(await second.reader.lengthBytes(traceId)).toBe(length);
    expect(logOf(second, traceId, 'copies/logs')).toEqual(logOf(first, traceId));
  });

  it('removes nothing of a process that has got the trace while it asked what waits to be exported', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries().filter((delivery) => !isLog(delivery));
    const traceId = traceOf(all);
    const last = at(all, -1);
    for (const delivery of all.slice(0, -1)) await first.read(delivery);
    await first.builder.store(traceId, false);
    first.followed.areSettled = true;
    const { journal } = bench.state;
    let answer: ((isPending: boolean) => void) | undefined;
    const isExportPending = journal.isExportPending.bind(journal);
    journal.isExportPending = () => new Promise((resolve) => (answer = resolve));
    await bench.until('the question', () => answer !== undefined);
    journal.isExportPending = isExportPending;
    await first.begin(2, false);
    await second.begin(2);
    await second.read(last);
    // What it has put is not named yet when the first one has its answer.
    const putFiles = journal.putFiles.bind(journal);
    journal.putFiles = async (...args) => {
      answer?.(false);
      let turns = 0;
      await bench.until('what the first one does about it', () => ++turns > 100);
      return await putFiles(...args);
    };
    await second.builder.store(traceId, false);
    journal.putFiles = putFiles;
    const keys = await bench.bucket.list('runs/');
    for (const { objectKey } of await journal.filesOf(traceId)) expect(keys).toContain(objectKey);
  });

  it('goes on committing when a trace that it took by its old partition has gone to another process', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries().filter((delivery) => !isLog(delivery));
    const [one, two] = [at(all, 0), at(all, 1)];
    const traceId = traceOf(all);
    let count = 3;
    while (partitionOf(traceId, count) === partitionOf(traceId, 2)) count += 1;
    const now = partitionOf(traceId, count);
    const every = Array.from({ length: count }, (_, index) => index);
    const others = every.filter((partition) => partition !== now);
    await first.begin(1);
    await first.read(one);
    await first.builder.store(traceId, false);
    await first.beginWith(2, every, count);
    await bench.until('the trace', () => first.followed.adopted.includes(traceId));
    await first.read(two);
    await first.beginWith(3, others, count);
    await second.beginWith(3, [now], count);
    await second.read(two);
    const other = traceIds().find((id) => partitionOf(id, count) !== now);
    if (other === undefined) throw new Error('all ids have one partition');
    first.committed.length = 0;
    await first.read(ofTrace(one, other));
    await bench.until('the commit', () => first.committed.length > 0);
    await bench.until('the commit of the other one', () => second.committed.length > 0);
  });

  it('loses nothing to two that have lost the trace one after the other without knowing', async () => {
    const [first, second, third] = [await bench.startProcess(), await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const [a, b, c] = [at(all, 0), at(all, 1), at(all, 2)];
    const rest = all.slice(3);
    await first.read(a);
    await first.builder.store(traceId, false);
    await second.begin(2);
    await bench.until('the take-over', () => second.followed.adopted.includes(traceId));
    // The first one has lost the trace, and does not know.
    await first.read(b);
    await first.builder.store(traceId, false);
    await third.begin(3);
    await bench.until('the take-over', () => third.followed.adopted.includes(traceId));
    // And so has the second one.
    await second.read(c);
    await second.builder.store(traceId, false);
    for (const delivery of [c, ...rest]) await third.read(delivery);
    await third.builder.store(traceId, false);
    const fourth = await bench.startProcess();
    expect(await fourth.reader.lengthBytes(traceId)).toBe(third.builder.lengthBytes(traceId));
    expect(logOf(fourth, traceId, 'copies/logs')).toEqual(logOf(third, traceId));
  });

  it('removes nothing in the bucket of one that has had the trace since', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const last = at(all, -1);
    for (const delivery of all.slice(0, -1)) await first.read(delivery);
    await first.builder.store(traceId, true);
    await second.begin(2);
    await bench.until('the take-over', () => second.followed.adopted.includes(traceId));
    await second.read(last);
    await second.builder.store(traceId, false);
    // The second one has put another, which the database does not name yet.
    await bench.bucket.put(`runs/${traceId}/0000000002-aaaaaaaa/segments/0000000000009999`, Buffer.from('more'));
    const keys = await bench.bucket.list('runs/');
    expect(keys).toContainEqual(expect.stringContaining('/segments/'));
    // It was just about to when it lost the trace.
    await first.files.tidy(traceId, 1);
    expect(await bench.bucket.list('runs/')).toEqual(keys);
  });

  it('drops what it has lost, and goes on with what nobody else has had', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.read(delivery);
    await first.begin(2);
    expect([first.followed.dropped, first.followed.adopted]).toEqual([[], []]);
    await first.begin(3, false);
    expect(first.followed.dropped).toEqual([traceId]);
    expect(first.builder.lengthBytes(traceId)).toBeUndefined();
    expect(await first.builder.store(traceId, true)).toBe(false);
    await second.begin(3);
    await first.begin(4);
    for (const delivery of all) await first.read(delivery);
    expect(first.builder.lengthBytes(traceId)).toBeGreaterThan(0);
  });

  it('takes nothing of a message with records of a trace whose partition it has not', async () => {
    const first = await bench.startProcess();
    const all = deliveries();
    const delivery = at(all, 0);
    const outcomes: unknown[] = [];
    for (const partition of [0, 1]) {
      await first.beginWith(1 + partition, [partition], 2);
      outcomes.push(await first.builder.consume(delivery).catch((error: unknown) => error));
    }
    expect(outcomes.filter((one) => one instanceof MisplacedError)).toHaveLength(1);
    expect(outcomes.filter((one) => one === undefined)).toHaveLength(1);
  });

  it('stores the whole log at its end, lets go of it, and brings it back with what comes late', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    const last = at(all, -1);
    for (const delivery of all.slice(0, -1)) await first.read(delivery);
    await first.builder.store(traceId, false);
    first.followed.areSettled = true;
    const isLetGo = () => first.builder.lengthBytes(traceId) === undefined;
    await bench.until('the end', isLetGo);
    await bench.until('the drop', () => first.followed.dropped.includes(traceId));
    const files = await bench.state.journal.filesOf(traceId);
    expect(await bench.bucket.list('runs/')).toEqual(files.map(({ objectKey }) => objectKey).sort());
    const log = files.find(({ name }) => name === 'telemetry.jsonl');
    const stored = String(await bench.bucket.get(log?.objectKey ?? ''));
    expect(stored.split('\n').length).toBeGreaterThan(10);
    await first.read(last);
    expect(first.followed.adopted).toEqual([traceId]);
    await bench.until('the end again', isLetGo);
    const now = (await bench.state.journal.filesOf(traceId)).find(({ name }) => name === 'telemetry.jsonl');
    const whole = String(await bench.bucket.get(now?.objectKey ?? ''));
    expect(whole.startsWith(stored)).toBe(true);
    expect(whole.length).toBeGreaterThan(stored.length);
    // What was replaced is gone.
    expect(await bench.bucket.list('runs/')).toHaveLength(2);
  });

  it('has runs judged again when more is known of their steps', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.read(delivery);
    await bench.until('a look', () => first.followed.stepsChanged.length > 0);
    first.followed.stepsChanged.length = 0;
    await bench.state.journal.noteSteps([traceId]);
    await bench.until('the news', () => first.followed.stepsChanged.includes(traceId));
  });

  it('stores everything when it ends, so that nothing is read again', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries().filter((delivery) => !isLog(delivery));
    for (const delivery of all) await first.read(delivery);
    await first.builder.end(true);
    expect(first.committed).toEqual([all.length]);
  });

  it('tries a commit again, and gives the connection up when that does not help', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const [one, two, three] = [at(all, 0), at(all, 1), at(all, 2)];
    first.commitFailure = new Error('not the coordinator');
    await first.read(one);
    const failures = () => first.logger.lines.filter(({ message }) => message.includes('commit')).length;
    await bench.until('a failure', () => failures() > 0);
    await first.read(two);
    await bench.until('another one', () => failures() > 1);
    await expect(first.read(three)).rejects.toThrow('could not be committed');
    await first.begin(2);
    first.commitFailure = undefined;
    await first.read(three);
    await bench.until('the commit', () => first.committed.length > 0);
  });

  it('reads no more while much is not in the bucket, until that is there, or others have the partitions', async () => {
    const first = await bench.startProcess(1_000);
    await first.begin(1);
    const all = deliveries();
    const [one, two] = [at(all, 0), at(all, 1)];
    bench.bucket.failure = new Error('no answer');
    let hasRead = false;
    const reading = first.read(one).then(() => {
      hasRead = true;
    });
    await bench.until('failures', () => first.logger.lines.filter(({ level }) => level === 'warn').length > 2);
    expect([hasRead, first.builder.status.unstoredBytes > 1_000]).toEqual([false, true]);
    bench.bucket.failure = undefined;
    await bench.until('the store', () => hasRead);
    await reading;
    expect(first.builder.status.unstoredBytes).toBe(0);
    bench.bucket.failure = new Error('no answer');
    const over = new AbortController();
    const cutOff = first.read(two, over.signal);
    over.abort();
    await cutOff;
    expect(first.builder.status.unstoredBytes).toBeGreaterThan(1_000);
  });

  it('makes no small segment of what comes while one is put', async () => {
    const first = await bench.startProcess();
    await first.begin(1);
    const all = deliveries();
    const [one, two] = [at(all, 0), at(all, 1)];
    await first.read(one);
    const put = bench.bucket.put.bind(bench.bucket);
    bench.bucket.put = async (key, bytes) => {
      bench.bucket.put = put;
      await first.read(two);
      await put(key, bytes);
    };
    await first.builder.store(traceOf(all), false);
    expect(await bench.bucket.list('runs/')).toHaveLength(1);
    expect(first.builder.status.unstoredBytes).toBeGreaterThan(0);
    await first.builder.store(traceOf(all), false);
    expect(await bench.bucket.list('runs/')).toHaveLength(2);
    expect(first.builder.status.unstoredBytes).toBe(0);
  });

  it('refuses topics with different numbers of partitions', async () => {
    const first = await bench.startProcess();
    const partitionCounts = new Map([
      ['otlp_spans', 3],
      ['otlp_logs', 4],
    ]);
    const assignment = { generation: 1, partitions: new Set([0]), partitionCounts };
    await expect(first.builder.begin(assignment, new AbortController().signal)).rejects.toThrow('same number');
  });
});
