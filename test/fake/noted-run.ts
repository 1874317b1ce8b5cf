import type { TraceId } from '../../src/record/telemetry-record.js';
import type { TraceNote } from '../../src/storage/invocation-store.js';
import type { RunRow } from '../../src/storage/run-store.js';

/** The row of a trace whose log has 10 bytes. */
export function rowOf(traceId: TraceId, seenUnixMs: number, isOpen = false): RunRow {
  const times = { firstSeenUnixMs: seenUnixMs, lastSeenUnixMs: seenUnixMs };
  return { traceId, ...times, state: isOpen ? 'open' : 'finished', logBytes: 10, summary: '{}', parquetBytes: 10 };
}

/** Its only invocation, nobody's step: a run of the job adhoc. */
export function noteOf(traceId: TraceId, endedUnixMs: number, isOpen = false): TraceNote {
  const verdict = isOpen ? null : 'success';
  const place = { job: 'adhoc', environment: null, project: null };
  const ofNobody = { stepId: null, namedStepId: null };
  const times = { startedUnixMs: endedUnixMs, endedUnixMs };
  const engine = { engineVersion: null, gitBranch: null, gitSha: null };
  const rest = { statusMessage: null, isSaved: true, parquetFile: 'telemetry.parquet' };
  return {
    traceId,
    invocations: [
      {
        index: 1,
        accountId: null,
        ...ofNobody,
        command: 'dbt build',
        verdict,
        ...times,
        ...engine,
        ...rest,
        scope: place,
      },
    ],
  };
}
