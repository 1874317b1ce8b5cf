import { ofAccount } from './account-attribute.js';
import type { RecordBatch } from './record-batch.js';
import { SpanBatch } from './span-batch.js';

/** The batch with its resource as one of an account (`null`: the first); itself where it is. */
export function batchOfAccount(batch: RecordBatch, accountId: number | null): RecordBatch {
  const resource = ofAccount(batch.resource, accountId);
  if (resource === batch.resource) return batch;
  if (!(batch instanceof SpanBatch)) return { ...batch, resource };
  return new SpanBatch(batch.traceId, resource, batch.page, batch.from, batch.to);
}
