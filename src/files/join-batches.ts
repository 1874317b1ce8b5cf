import { resourceKey } from '../record/attributes.js';
import type { Delivery, RecordBatch } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** Joins the stretches of one trace and resource; in each the order stays. */
export function joinBatches({ batches, foreign }: Delivery): Delivery {
  const joined = new Map<string, RecordBatch & { readonly records: TelemetryRecord[] }>();
  for (const batch of batches) {
    const key = batch.traceId + resourceKey(batch.resource);
    const known = joined.get(key);
    if (known === undefined) joined.set(key, { ...batch, records: [...batch.records] });
    else for (const record of batch.records) known.records.push(record);
  }
  return { batches: [...joined.values()], foreign };
}
