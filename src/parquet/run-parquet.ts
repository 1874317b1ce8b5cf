import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent, RunListener } from '../run/run-event.js';
import type { InvocationSummary, RunSummary } from '../run/verdict.js';

/**
 * Has each invocation's Parquet file written beside the record log: when it ends while others of its trace go on, and what
 * is missing or outdated when the run is finished. One run at a time.
 */
export class InvocationParquet implements RunListener {
  /** One run at a time. */
  private tail: Promise<void> = Promise.resolve();

  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(
    private readonly dataFolder: string,
    private readonly writer: ParquetJobWriter,
  ) {}

  /** @throws when a file cannot be written; the one of an earlier time is left as it was. */
  onRunEvent(event: RunEvent): Promise<void> {
    const written = this.tail.then(() => this.handle(event));
    this.tail = written.catch(() => {});
    return written;
  }

  private async handle(event: RunEvent): Promise<void> {
    const { run } = event;
    if (event.type === 'finished') {
      await this.write(run, run.invocations);
      // Late records may have shown that two invocations are one.
      const surplus = `telemetry-${run.invocations.length + 1}.parquet`;
      await rm(join(this.dataFolder, 'runs', run.traceId, surplus), { force: true });
    } else if (event.type === 'invocationEnded' && run.state === 'open') {
      // When the whole run is over, `finished` follows at once and writes what is left.
      await this.write(run, [event.invocation]);
    }
  }

  private async write(run: RunSummary, invocations: readonly InvocationSummary[]): Promise<void> {
    if (invocations.length === 0) return;
    await this.writer.write({
      traceId: run.traceId,
      logBytes: run.logBytes,
      invocationCount: run.invocations.length,
      files: invocations.map(({ index, parquetFile }) => ({ index, parquetFile })),
    });
  }
}

/** Parquet files of a run that are to hold the same part of its record log: those that do not are written. Plain data: it goes to a thread. */
export interface ParquetJob {
  readonly traceId: TraceId;
  /** Length of that part in bytes. */
  readonly logBytes: number;
  /** Invocations in it; the records of a single one need not be distinguished. */
  readonly invocationCount: number;
  /** Position of an invocation in its trace, from 1, and the name of its file in the run's folder. */
  readonly files: readonly { readonly index: number; readonly parquetFile: string }[];
}

/** Writes the files of one job at a time. */
export interface ParquetJobWriter {
  /** @throws when a file cannot be written; the one of an earlier time is left as it was. */
  write(job: ParquetJob): Promise<void>;
}
