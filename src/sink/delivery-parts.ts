import { groupBy } from '../component/group-by.js';
import type { RecordBatch } from '../record/record-batch.js';
import type { Delivery } from '../record/record-consumer.js';

/**
 * Cuts a delivery into parts of at most so many traces each; one as it is if it has no more. What belongs to one trace
 * stays together and in order.
 */
export function* partsOf(delivery: Delivery, maxTraces: number): Iterable<Delivery> {
  if (delivery.batches.length <= maxTraces) {
    yield delivery;
    return;
  }
  let foreign = delivery.foreign;
  let batches: RecordBatch[] = [];
  let traceCount = 0;
  for (const list of groupBy(delivery.batches, ({ traceId }) => traceId).values()) {
    for (const batch of list) batches.push(batch);
    traceCount += 1;
    if (traceCount < maxTraces) continue;
    yield { batches, foreign };
    [batches, foreign, traceCount] = [[], [], 0];
  }
  if (batches.length > 0 || foreign.length > 0) yield { batches, foreign };
}
