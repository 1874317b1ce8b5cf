import { parseTraceId } from '../src/record/telemetry-record.js';
import type { InvocationNote, TraceNote } from '../src/storage/invocation-store.js';

/**
 * What is noted of a trace with one command of nobody's step: `dbt build` of dbt 2.0.0.
 * @param hexId the trace's id
 */
export function notedCommand(
  hexId: string,
  given: Pick<InvocationNote, 'verdict' | 'startedUnixMs' | 'endedUnixMs' | 'isSaved' | 'scope'>,
): TraceNote {
  const traceId = parseTraceId(hexId);
  if (traceId === undefined) throw new Error(`${hexId} is no trace id`);
  const invocation: InvocationNote = {
    ...{ index: 1, accountId: null, stepId: null, namedStepId: null, command: 'dbt build', statusMessage: null },
    ...{ parquetFile: 'telemetry.parquet', engineVersion: '2.0.0', gitBranch: null, gitSha: null },
    ...given,
  };
  return { traceId, invocations: [invocation] };
}
