import type { TraceId } from '../record/ids.js';
import type { LoggedRecord } from '../sink/record-log.js';
import type { LoggedLines } from './logged-lines.js';

/** What became durable of one run, as an export worker takes it. */
export interface AppendedRun {
  readonly traceId: TraceId;
  /** Offset of the first new byte of the record log. */
  readonly offset: number;
  /** Length of the record log with it. */
  readonly lengthBytes: number;
  /** What it is, the worker's to keep; left out where it is to be read from the log. */
  readonly content?: AppendedContent;
}

/** Records, or the lines that they stand in. */
export type AppendedContent =
  | { readonly records: readonly LoggedRecord[]; readonly lines?: never }
  | { readonly lines: readonly LoggedLines[]; readonly records?: never };
