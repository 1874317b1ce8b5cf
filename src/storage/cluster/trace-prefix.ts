import type { TraceId } from '../../record/ids.js';

/** What keys of a trace's files in the bucket begin with, where several processes share it. */
export function tracePrefix(traceId: TraceId): string {
  return `runs/${traceId}/`;
}
