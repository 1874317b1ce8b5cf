import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ACCOUNT_ATTRIBUTE } from '../../../src/record/attributes.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import { batchOfAccount } from '../../../src/record/record-page.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { type BenchProcess, ClusterBench } from '../../fake/cluster-bench.js';
import { sampleDeliveriesOfRecords } from '../../fake/sample-deliveries.js';

let bench: ClusterBench;
beforeEach(async () => {
  bench = await ClusterBench.open();
});
afterEach(() => bench.close());

const deliveries = (): readonly Delivery[] => [...sampleDeliveriesOfRecords('build-mixed')];

function traceOf(all: readonly Delivery[]): TraceId {
  const traceId = all.find(({ batches }) => batches.length > 0)?.batches[0]?.traceId;
  if (traceId === undefined) throw new Error('the sample is empty');
  return traceId;
}

/** The log of a trace as a process has it. */
const logOf = ({ folder }: BenchProcess, traceId: TraceId, of = '.') =>
  ['telemetry.jsonl', 'resources.jsonl'].map((name) => readFileSync(join(folder, of, 'runs', traceId, name), 'utf8'));

async function isBroughtUp({ followed, owned }: BenchProcess, traceId: TraceId): Promise<boolean> {
  const row = await bench.state.cluster.traces.find(traceId);
  const parts = await bench.state.cluster.journal.list(traceId, 0, 10_000);
  const isWhole = parts.at(-1)?.part === row?.lastPart || parts.length === 0;
  return isWhole && followed.lengths.has(traceId) && owned.lengthBytes(traceId) === followed.lengths.get(traceId);
}

describe('traces that processes share', () => {
  it('are put together by the one that got them first, whichever gets the rest', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries();
    const traceId = traceOf(all);
    for (const [index, delivery] of all.entries()) await (index % 2 === 0 ? first : second).writer.consume(delivery);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    expect(second.followed.lengths.size).toBe(0);
    expect(first.followed.adopted).toEqual([]);
    expect((await bench.state.cluster.traces.find(traceId))?.owner).toBe(first.identity.processId);
  });

  it('are the same byte for byte for the process that takes them over, whenever log records were waited for', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries();
    const traceId = traceOf(all);
    // Logs before their spans: they wait for names, some of them longer than anybody waits.
    const isLog = ({ batches }: Delivery) =>
      batches.some(({ records }) => records.some((one) => one.recordType === 'LogRecord'));
    const late = [...all.filter(isLog), ...all.filter((delivery) => !isLog(delivery))];
    const half = all.filter(isLog).length;
    for (const delivery of late.slice(0, half)) await first.writer.consume(delivery);
    await bench.until('an end of the wait', async () =>
      (await bench.state.cluster.journal.list(traceId, 0, 1_000)).some(({ objectKey }) => objectKey === null),
    );
    for (const delivery of late.slice(half)) await second.writer.consume(delivery);
    await bench.until('the log', async () => {
      const parts = await bench.state.cluster.journal.list(traceId, 0, 1_000);
      return parts.length > late.length && (await isBroughtUp(first, traceId));
    });
    bench.clock.advance(10_000);
    // Whoever reads takes all parts that there are; the owner may be behind them for a moment.
    await bench.until('the whole log', async () => {
      const readBytes = await second.reader.lengthBytes(traceId);
      return readBytes === first.owned.lengthBytes(traceId) && (await isBroughtUp(first, traceId));
    });
    const before = logOf(first, traceId);
    const length = await second.reader.lengthBytes(traceId);
    expect(logOf(second, traceId, 'read')).toEqual(before);
    await first.die();
    await bench.until('the take-over', () => isBroughtUp(second, traceId));
    expect(second.followed.adopted).toEqual([traceId]);
    expect(second.followed.lengths.get(traceId)).toBe(length);
    expect(logOf(second, traceId)).toEqual(before);
    expect((await bench.state.cluster.traces.find(traceId))?.generation).toBe(2);
  });

  it("are their first sender's account's, whichever process adds to them or takes them over", async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const [begin, ...rest] = deliveries();
    if (begin === undefined) throw new Error('the sample is empty');
    const traceId = traceOf([begin, ...rest]);
    const theirs = begin.batches.map((batch) => batchOfAccount(batch, 10_002));
    await first.writer.consume({ ...begin, batches: theirs });
    for (const [index, delivery] of rest.entries()) await (index % 2 === 0 ? first : second).writer.consume(delivery);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    bench.clock.advance(10_000);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    const before = logOf(first, traceId);
    const named = (before[1] ?? '').split('\n').filter((line) => line.includes('"resource"'));
    expect(named.length).toBeGreaterThan(0);
    for (const line of named)
      expect(JSON.parse(line).resource.attributes).toMatchObject({ [ACCOUNT_ATTRIBUTE]: 10_002 });
    await first.die();
    await bench.until('the take-over', () => isBroughtUp(second, traceId));
    expect(logOf(second, traceId)).toEqual(before);
  });

  it('have each record once, however often it was sent to whom', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.writer.consume(delivery);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    bench.clock.advance(10_000);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    const before = logOf(first, traceId);
    for (const delivery of all) await Promise.all([first, second].map(({ writer }) => writer.consume(delivery)));
    const lastPart = (await bench.state.cluster.traces.find(traceId))?.lastPart ?? 0;
    expect(lastPart).toBeGreaterThanOrEqual(3 * all.length);
    await first.die();
    await bench.until('the take-over', () => isBroughtUp(second, traceId));
    expect(logOf(second, traceId)).toEqual(before);
  });

  it('go to the bucket at their end, are let go of, and are brought back with what comes late', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries();
    const traceId = traceOf(all);
    const [last] = all.slice(-1);
    for (const delivery of all.slice(0, -1)) await first.writer.consume(delivery);
    first.followed.areSettled = true;
    second.followed.areSettled = true;
    const isLetGo = async () => (await bench.state.cluster.traces.find(traceId))?.owner === null;
    await bench.until('the end', isLetGo);
    await bench.until('the drop', () => first.followed.dropped.includes(traceId));
    expect(await bench.state.cluster.journal.list(traceId, 0, 10)).toEqual([]);
    const files = await bench.state.cluster.traces.filesOf(traceId);
    expect(await bench.bucket.list('runs/')).toEqual(files.map(({ objectKey }) => objectKey).sort());
    const stored = String(
      await bench.bucket.get(files.find(({ name }) => name === 'telemetry.jsonl')?.objectKey ?? ''),
    );
    expect(stored.split('\n').length).toBeGreaterThan(10);
    if (last !== undefined) await second.writer.consume(last);
    await bench.until('the late records', () => isBroughtUp(second, traceId));
    expect(second.followed.adopted).toEqual([traceId]);
    await bench.until('the end again', isLetGo);
    const [now] = (await bench.state.cluster.traces.filesOf(traceId)).filter(({ name }) => name === 'telemetry.jsonl');
    const whole = String(await bench.bucket.get(now?.objectKey ?? ''));
    expect(whole.startsWith(stored)).toBe(true);
    expect(whole.length).toBeGreaterThan(stored.length);
    // What was replaced is gone.
    expect(await bench.bucket.list('runs/')).toHaveLength(2);
  });

  it('are judged again by their owner when more is known of their steps', async () => {
    const first = await bench.startProcess();
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.writer.consume(delivery);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    await bench.state.cluster.traces.noteSteps('another', [traceId]);
    await bench.until('the news', () => first.followed.stepsChanged.includes(traceId));
  });

  it('are dropped by a process that lost them, which stores nothing of them', async () => {
    const [first, second] = [await bench.startProcess(), await bench.startProcess()];
    const all = deliveries();
    const traceId = traceOf(all);
    for (const delivery of all) await first.writer.consume(delivery);
    await bench.until('the log', () => isBroughtUp(first, traceId));
    await bench.state.cluster.members.leave(first.identity.processId);
    await expect(first.writer.consume(all[0] ?? { batches: [], foreign: [] })).rejects.toMatchObject({
      code: 'unavailable',
      retryAfterMs: 5_000,
    });
    await bench.until(
      'the loss',
      () => first.followed.dropped.includes(traceId) && second.followed.lengths.has(traceId),
    );
    expect(first.owned.lengthBytes(traceId)).toBeUndefined();
  });

  it('are not accepted while the bucket takes nothing', async () => {
    const first = await bench.startProcess();
    const [delivery] = deliveries();
    if (delivery === undefined) throw new Error('the sample is empty');
    bench.bucket.failure = new Error('no space');
    await expect(first.writer.consume(delivery)).rejects.toMatchObject({ code: 'unavailable', retryAfterMs: 5_000 });
    bench.bucket.failure = undefined;
    await first.writer.consume(delivery);
    expect(first.logger.lines.map(({ level }) => level)).toEqual(['error', 'info']);
  });
});
