import type { TraceId } from '../../record/ids.js';
import type { InvocationSummary } from '../../run/run-summary.js';
import type { RunFiles } from './run-files.js';

/** Earlier commands that one is compared with. */
const MAX_EARLIER = 50;

/**
 * How long the 50 latest earlier commands took that are of the same job and began with the same word, and succeeded; in
 * milliseconds, newest first. Commands that nobody gave a job are of one job together.
 * @param recent runs among which they are looked for, newest first
 */
export async function earlierLengthsMs(
  command: InvocationSummary,
  ownTraceId: TraceId,
  files: RunFiles,
  recent: readonly TraceId[],
): Promise<readonly number[]> {
  const lengths: number[] = [];
  for (const traceId of recent) {
    if (lengths.length >= MAX_EARLIER) break;
    if (traceId === ownTraceId) continue;
    for (const other of (await files.summary(traceId))?.invocations ?? []) {
      if (isComparable(other, command)) lengths.push(Number(other.endTimeUnixNano - other.startTimeUnixNano) / 1e6);
    }
  }
  return lengths.slice(0, MAX_EARLIER);
}

function isComparable(other: InvocationSummary, command: InvocationSummary): boolean {
  return (
    other.verdict === 'success' &&
    other.command === command.command &&
    other.startTimeUnixNano < command.startTimeUnixNano &&
    (other.step?.job ?? null) === (command.step?.job ?? null)
  );
}
