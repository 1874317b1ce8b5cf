import type { FolderUsage } from '../../core/folders.js';
import type { TraceId } from '../../record/telemetry-record.js';

/** Where a trace stands among the processes. */
export interface SharedTrace {
  readonly traceId: TraceId;
  /** The process that assembles it; `null` if none has to. */
  readonly owner: string | null;
  /** One higher each time that another process gets it. */
  readonly generation: number;
  /** Number of the last part that was accepted. */
  readonly lastPart: number;
  /** The log in the bucket contains the parts up to this number; 0 if there is none. */
  readonly storedPart: number;
  /** A new value whenever the steps of its records change. */
  readonly stepVersion: number;
  /** When its first part arrived, by the database's clock: a new time if it was removed and has arrived again. */
  readonly bornUnixMs: number;
}

/** A file of a trace in the bucket. */
export interface SharedFile {
  /** As it is called in a run's folder. */
  readonly name: string;
  readonly objectKey: string;
  readonly sizeBytes: number;
}

/** Which process has which trace, and what of it is in the bucket. */
export interface SharedTraceStore {
  find(traceId: TraceId): Promise<SharedTrace | undefined>;
  /** Those of the traces that there are. */
  known(traceIds: readonly TraceId[]): Promise<ReadonlySet<TraceId>>;
  /** The traces that a process has. */
  listOf(processId: string): Promise<readonly SharedTrace[]>;
  /** Takes traces whose owner is dead. @returns how many, at most `limit` */
  claim(processId: string, limit: number): Promise<number>;
  /** Whether the process has the trace. */
  isOwn(processId: string, traceId: TraceId): Promise<boolean>;
  /** The steps of traces changed; traces without an owner become the process's. */
  noteSteps(processId: string, traceIds: readonly TraceId[]): Promise<void>;
  /** The trace's files in the bucket. */
  filesOf(traceId: TraceId): Promise<readonly SharedFile[]>;
  /** Count and size of the files of traces; of all traces by default. */
  usage(traceIds?: readonly TraceId[]): Promise<FolderUsage>;
  /** Files of many traces, those of the run that was written to last first. */
  latestFiles(traceIds: readonly TraceId[]): Promise<readonly (SharedFile & { readonly traceId: TraceId })[]>;
  /**
   * Records files in the bucket that replace those of their names; with `storedPart`, that they contain the log up to
   * this part, and removes parts up to it. @returns false, without a change, if the process does not own the trace
   */
  putFiles(processId: string, traceId: TraceId, files: readonly SharedFile[], storedPart?: number): Promise<boolean>;
  /** Forgets a file. */
  removeFile(processId: string, traceId: TraceId, name: string): Promise<void>;
  /** Lets go of a trace all of which is stored. @returns false where more of it has come, or it is another's */
  release(processId: string, trace: Pick<SharedTrace, 'traceId' | 'stepVersion'>): Promise<boolean>;
  /** Whether one of the destinations has not got to the end of the trace's run. */
  isExportPending(traceId: TraceId, destinations: readonly string[]): Promise<boolean>;
}
