import type { Appended } from '../log/appended.js';
import type { TraceId } from '../record/ids.js';

/** What follows the logs of the traces that this process has. */
export interface TraceFollower {
  /** Parts of a trace have become known; lent for the time of the call, which must not wait. */
  onAppended(appended: Appended): void;
  /** A trace came from another process, or from the bucket: its log is here as a whole. */
  adopt(traceId: TraceId, lengthBytes: number): Promise<void>;
  /** More is known of the steps of a trace. */
  onStepsChanged(traceId: TraceId): void;
  /** Whether everything about the trace is told and written. */
  isSettled(traceId: TraceId): Promise<boolean>;
  /** The trace is another's, or nobody's: nothing is known of it any more when this resolves. */
  drop(traceId: TraceId): Promise<void>;
}
