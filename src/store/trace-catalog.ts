import type { TraceId } from '../record/ids.js';

/** Which traces are of which runs, as an account sees them: another's are as if they were not there. */
export interface TraceCatalog {
  /** Runs that the trace holds commands of, the earliest first. */
  runsOf(accountId: number, traceId: TraceId): Promise<readonly number[]>;
  /** All traces of the account's runs, but none that holds a command of another account's run as well. */
  listTraces(accountId: number): Promise<readonly TraceId[]>;
}
