import type { TraceId } from '../record/ids.js';

/** How far one destination has got with one run. */
export interface ExportCursor {
  readonly destination: string;
  readonly traceId: TraceId;
  /** Every span anchored before this byte offset of the record log was sent (or refused for good). */
  readonly tracesOffset: number;
  /** The same for log records. */
  readonly logsOffset: number;
  /** Length of the record log when the run's last items (unfinished spans, synthetic root) were sent; `null` before. */
  readonly finishedAtBytes: number | null;
}

/** A run that a destination has not got to the end of. */
export interface PendingRun {
  readonly traceId: TraceId;
  /** At the start of the log where none was saved. */
  readonly cursor: ExportCursor;
  /** Length of the record log in the run's row; an open run's may be longer. 0 if several processes share the database: it is reported when the log is there. */
  readonly logBytes: number;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
}

/** Cursors of destinations into record logs and into the foreign telemetry. */
export interface CursorStore {
  find(destination: string, traceId: TraceId): Promise<ExportCursor | undefined>;
  save(cursors: readonly ExportCursor[]): Promise<void>;
  /** Runs that the destination is to get (see `isWanted`) and has not got to the end of, oldest first. */
  listPending(destination: string): Promise<readonly PendingRun[]>;
  /**
   * Whether a destination gets a run: the run was first seen at or after the destination's registration, was open
   * then, or is not known yet.
   */
  isWanted(destination: string, traceId: TraceId): Promise<boolean>;
  /**
   * Registers a destination; the first time, it is to get the runs that are open now and those first seen from
   * `nowUnixMs` on. Returns the time since which it gets runs.
   */
  register(destination: string, nowUnixMs: number): Promise<number>;
  findForeign(destination: string): Promise<ForeignCursor | undefined>;
  /** @throws StoreError when the destination was never registered. */
  saveForeign(destination: string, cursor: ForeignCursor): Promise<void>;
}

/** A place in the foreign telemetry: a segment file's name and a byte offset in it. */
export interface ForeignCursor {
  readonly segment: string;
  readonly offset: number;
}
