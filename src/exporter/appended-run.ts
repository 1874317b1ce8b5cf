import type { TraceId } from '../record/ids.js';
import type { LoggedRecord } from '../sink/record-log.js';

/** What became durable of one run, as an export worker takes it. */
export interface AppendedRun {
  readonly traceId: TraceId;
  /** Offset of the first new byte of the record log. */
  readonly offset: number;
  /** Length of the record log with it. */
  readonly lengthBytes: number;
  /** Makes the records, when the worker comes to them; left out where they are to be read from the log. */
  readonly records?: () => readonly LoggedRecord[];
}
