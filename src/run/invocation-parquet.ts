import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TraceId } from '../record/ids.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { RecordLogReader } from '../sink/record-log.js';
import { InvocationAssigner } from './invocation-assigner.js';
import type { RunEvent, RunListener } from './run-event.js';
import type { InvocationSummary, RunSummary } from './run-summary.js';

/** A Parquet file being written. It has its name only once `close` has resolved. */
interface ParquetFile {
  append(records: Iterable<TelemetryRecord>): Promise<void>;
  close(): Promise<unknown>;
  /** Gives up and leaves nothing. */
  abort(): Promise<void>;
}

/** What the listener works with. */
export interface InvocationParquetDeps {
  readonly reader: RecordLogReader;
  createParquet(path: string): Promise<ParquetFile>;
  /**
   * Writes the first `byteCount` bytes of a trace's record log as one file, the quick way for runs of one command.
   * Default: the records are read and given to `createParquet`'s file.
   */
  writeLog?(traceId: TraceId, byteCount: number, path: string): Promise<void>;
}

/**
 * Writes each invocation's Parquet file beside the record log: when it ends while others of its trace go on, and what is
 * missing or outdated when the run is finished. Reads the log in chunks and writes one file at a time, whatever the size.
 */
export class InvocationParquet implements RunListener {
  /** What the files of runs that are not finished hold, by the invocation's position. */
  private readonly written = new Map<TraceId, Map<number, string>>();
  /** One file at a time, over all runs. */
  private tail: Promise<void> = Promise.resolve();

  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(
    private readonly dataFolder: string,
    private readonly deps: InvocationParquetDeps,
  ) {}

  /** @throws when a file cannot be written; the one of an earlier time is left as it was. */
  onRunEvent(event: RunEvent): Promise<void> {
    const written = this.tail.then(() => this.handle(event));
    this.tail = written.catch(() => {});
    return written;
  }

  private async handle(event: RunEvent): Promise<void> {
    const { run } = event;
    if (event.type === 'started') return;
    if (event.type === 'finished') {
      await this.finish(run);
    } else if (run.state === 'open') {
      // When the whole run is over, `finished` follows at once and writes what is left.
      await this.write(run, [event.invocation]);
      const known = this.written.get(run.traceId) ?? new Map<number, string>();
      this.written.set(run.traceId, known.set(event.invocation.index, contentOf(event.invocation)));
    }
  }

  private async finish(run: RunSummary): Promise<void> {
    const known = this.written.get(run.traceId);
    this.written.delete(run.traceId);
    await this.write(
      run,
      run.invocations.filter((invocation) => known?.get(invocation.index) !== contentOf(invocation)),
    );
    // Late records may have shown that two invocations are one.
    await rm(join(this.folderOf(run), `telemetry-${run.invocations.length + 1}.parquet`), { force: true });
  }

  private async write(run: RunSummary, invocations: readonly InvocationSummary[]): Promise<void> {
    const [only] = invocations;
    if (only === undefined) return;
    if (run.invocations.length === 1 && this.deps.writeLog !== undefined) {
      await this.deps.writeLog(run.traceId, run.logBytes, join(this.folderOf(run), only.parquetFile));
      return;
    }
    const indexOf = run.invocations.length > 1 ? await this.assign(run) : null;
    const all = { fromOffset: 0, toOffset: run.logBytes };
    for (const { index, parquetFile } of invocations) {
      const file = await this.deps.createParquet(join(this.folderOf(run), parquetFile));
      try {
        // Of commands that came one after the other, each is read once.
        const range = indexOf?.rangeOf(index) ?? all;
        for await (const chunk of this.deps.reader.read(run.traceId, range)) {
          const own = indexOf === null ? chunk : chunk.filter((logged) => indexOf.invocationIndexOf(logged) === index);
          await file.append(own.map(({ record }) => record));
        }
        await file.close();
      } catch (error) {
        await file.abort();
        throw error;
      }
    }
  }

  /** A first pass over the log: which record belongs to which invocation. */
  private async assign(run: RunSummary): Promise<InvocationAssigner> {
    const assigner = new InvocationAssigner();
    for await (const chunk of this.deps.reader.read(run.traceId, { fromOffset: 0, toOffset: run.logBytes })) {
      for (const logged of chunk) assigner.add(logged, 0);
    }
    return assigner;
  }

  private folderOf(run: RunSummary): string {
    return join(this.dataFolder, 'runs', run.traceId);
  }
}

function contentOf({ spanId, processSpanId, recordCount }: InvocationSummary): string {
  return `${spanId} ${processSpanId} ${recordCount}`;
}
