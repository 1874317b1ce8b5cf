import type { TraceId } from '../record/ids.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { batchesOf } from './batch-builder.js';
import { joinBatches } from './join-batches.js';
import type { JsonlTail } from './jsonl-tail.js';
import { readRecords } from './read-record.js';
import type { Reject } from './record-source.js';
import type { TailPosition } from './tail-position.js';

/** What was taken of a tail at once. */
export interface TakenStretch {
  readonly recordCount: number;
  /** The traces that the records belong to. */
  readonly traceIds: readonly TraceId[];
  /** What is no record and was passed over. */
  readonly rejects: readonly Reject[];
  /** Everything before it was taken; `undefined` where the last one stays. */
  readonly position: TailPosition | undefined;
}

/**
 * Hands the records of a tail to a consumer while they are written: a batch for each trace, and nothing is read on
 * before the consumer has resolved. Resolves when the tail ends: after its `finish()`, or when the signal aborts.
 * @param onTaken is called when the consumer has resolved, and waited for.
 * @throws what the consumer throws, SourceError when the file cannot be read.
 */
export async function feedTail(
  tail: JsonlTail,
  consumer: RecordConsumer,
  signal: AbortSignal,
  onTaken: (taken: TakenStretch) => void | Promise<void>,
): Promise<void> {
  for await (const { lines, rejects: others, position } of tail.chunks(signal)) {
    const { records, rejects } = readRecords(lines);
    const delivery = joinBatches({ batches: batchesOf(records), foreign: [] });
    if (records.length > 0) await consumer.consume(delivery);
    const traceIds = delivery.batches.map(({ traceId }) => traceId);
    await onTaken({ recordCount: records.length, traceIds, rejects: [...others, ...rejects], position });
  }
}
