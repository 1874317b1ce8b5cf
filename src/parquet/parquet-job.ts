import type { TraceId } from '../record/ids.js';

/** Parquet files of a run that are to hold the same part of its record log: those that do not are written. Plain data: it goes to a thread. */
export interface ParquetJob {
  readonly traceId: TraceId;
  /** Length of that part in bytes. */
  readonly logBytes: number;
  /** Invocations in it; the records of a single one need not be told apart. */
  readonly invocationCount: number;
  /** Position of an invocation in its trace, from 1, and the name of its file in the run's folder. */
  readonly files: readonly { readonly index: number; readonly parquetFile: string }[];
}

/** Writes the files of one job at a time. */
export interface ParquetJobWriter {
  /** @throws when a file cannot be written; the one of an earlier time is left as it was. */
  write(job: ParquetJob): Promise<void>;
}
