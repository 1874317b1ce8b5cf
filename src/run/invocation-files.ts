import { join } from 'node:path';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { RecordLogReader } from '../sink/record-log.js';
import { InvocationAssigner } from './invocation-assigner.js';
import type { ParquetJob, ParquetJobWriter } from './parquet-job.js';

/** A Parquet file being written. It has its name only once `close` has resolved. */
interface ParquetFile {
  append(records: Iterable<TelemetryRecord>): Promise<void>;
  close(): Promise<unknown>;
  /** Gives up and leaves nothing. */
  abort(): Promise<void>;
}

/** What the files are written with. */
export interface InvocationFilesDeps {
  readonly reader: Pick<RecordLogReader, 'read'>;
  createParquet(path: string): Promise<ParquetFile>;
  /**
   * Writes the first `byteCount` bytes of a trace's record log as one file, the quick way for runs of one command.
   * Default: the records are read and given to `createParquet`'s file.
   */
  writeLog?(traceId: ParquetJob['traceId'], byteCount: number, path: string): Promise<void>;
}

/** Writes invocations' Parquet files beside the record log. Reads the log in chunks, whatever its size. */
export class InvocationFiles implements ParquetJobWriter {
  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(
    private readonly dataFolder: string,
    private readonly deps: InvocationFilesDeps,
  ) {}

  async write(job: ParquetJob): Promise<void> {
    const { traceId, logBytes, invocationCount, files } = job;
    const [only] = files;
    if (only === undefined) return;
    const folder = join(this.dataFolder, 'runs', traceId);
    if (invocationCount === 1 && this.deps.writeLog !== undefined) {
      await this.deps.writeLog(traceId, logBytes, join(folder, only.parquetFile));
      return;
    }
    const assigned = invocationCount > 1 ? await this.assign(job) : null;
    for (const { index, parquetFile } of files) {
      await this.writeRecords(job, join(folder, parquetFile), index, assigned);
    }
  }

  /** A first pass over the log: which record belongs to which invocation. */
  private async assign({ traceId, logBytes }: ParquetJob): Promise<InvocationAssigner> {
    const assigner = new InvocationAssigner();
    for await (const chunk of this.deps.reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) {
      for (const logged of chunk) assigner.add(logged, 0);
    }
    return assigner;
  }

  private async writeRecords(
    { traceId, logBytes }: ParquetJob,
    path: string,
    index: number,
    assigned: InvocationAssigner | null,
  ): Promise<void> {
    const file = await this.deps.createParquet(path);
    try {
      // Of commands that came one after the other, each is read once.
      const range = assigned?.rangeOf(index) ?? { fromOffset: 0, toOffset: logBytes };
      for await (const chunk of this.deps.reader.read(traceId, range)) {
        const own = assigned === null ? chunk : chunk.filter((each) => assigned.invocationIndexOf(each) === index);
        await file.append(own.map(({ record }) => record));
      }
      await file.close();
    } catch (error) {
      await file.abort();
      throw error;
    }
  }
}
