import { UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { RecordBatch } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** Cuts records without a resource into batches of one trace each; the order stays. */
export function batchesOf(records: readonly TelemetryRecord[]): RecordBatch[] {
  const batches: { traceId: RecordBatch['traceId']; resource: RecordBatch['resource']; records: TelemetryRecord[] }[] =
    [];
  for (const record of records) {
    const last = batches.at(-1);
    if (last?.traceId === record.traceId) last.records.push(record);
    else batches.push({ traceId: record.traceId, resource: UNKNOWN_RESOURCE, records: [record] });
  }
  return batches;
}
