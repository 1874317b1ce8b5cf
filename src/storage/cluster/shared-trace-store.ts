import type { FolderUsage } from '../../core/folder-usage.js';
import type { TraceId } from '../../record/ids.js';

/** Where a trace stands among the processes. */
export interface SharedTrace {
  readonly traceId: TraceId;
  /** The process that puts it together; `null` where nobody has to. */
  readonly owner: string | null;
  /** One higher each time that another process gets it. */
  readonly generation: number;
  /** Number of the last part that was accepted. */
  readonly lastPart: number;
  /** The log in the bucket holds the parts up to this number; 0 where there is none. */
  readonly storedPart: number;
  /** Another one each time that more is known of the steps that its records are of. */
  readonly stepVersion: number;
  /** When its first part came, by the database's clock: another time where it was removed and has come anew. */
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
  /** More is known of the steps of traces; those that nobody has become the process's. */
  noteSteps(processId: string, traceIds: readonly TraceId[]): Promise<void>;
  /** The trace's files in the bucket. */
  filesOf(traceId: TraceId): Promise<readonly SharedFile[]>;
  /** How many files there are of traces, and what they take; of all where none are said. */
  usage(traceIds?: readonly TraceId[]): Promise<FolderUsage>;
  /** Files of many traces, those of the run that was written to last first. */
  latestFiles(traceIds: readonly TraceId[]): Promise<readonly (SharedFile & { readonly traceId: TraceId })[]>;
  /**
   * Notes files that are in the bucket in place of those of their names; with `storedPart`, that they hold the log up to
   * this part, and parts up to it are removed. @returns false, and nothing is changed, where the process has not got the trace
   */
  putFiles(processId: string, traceId: TraceId, files: readonly SharedFile[], storedPart?: number): Promise<boolean>;
  /** Forgets a file. */
  removeFile(processId: string, traceId: TraceId, name: string): Promise<void>;
  /** Lets go of a trace all of which is stored. @returns false where more of it has come, or it is another's */
  release(processId: string, trace: Pick<SharedTrace, 'traceId' | 'stepVersion'>): Promise<boolean>;
  /** Whether one of the destinations has not got to the end of the trace's run. */
  isExportPending(traceId: TraceId, destinations: readonly string[]): Promise<boolean>;
}
