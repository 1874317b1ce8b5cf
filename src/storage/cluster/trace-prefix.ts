import type { TraceId } from '../../record/telemetry-record.js';

/** What keys of a trace's files in the bucket begin with, where several processes share it. */
export function tracePrefix(traceId: TraceId): string {
  return `runs/${traceId}/`;
}
