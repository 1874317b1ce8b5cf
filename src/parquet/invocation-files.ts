import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_FILE } from '../log/append-file.js';
import type { LogRange, RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import { InvocationAssigner } from '../run/invocation-assigner.js';
import { recordDigest } from '../run/span-group.js';
import { LogParquetWriter, PickedParquet, type PickedPart } from './log-parquet.js';
import type { ParquetJob, ParquetJobWriter } from './run-parquet.js';

/** A line of the record log that is no record; at its number or, where the log was read in records, its offset in bytes. */
export interface DamagedLine {
  readonly traceId: string;
  readonly at: { readonly line: number } | { readonly offset: number };
  readonly reason: string;
}

/**
 * Writes the files of jobs in this thread, between the other things that it does.
 * @param dataFolder the data folder; runs are in its `runs/`
 */
export function createJobFiles(dataFolder: string, onDamage: (line: DamagedLine) => void): ParquetJobWriter {
  const logs = new LogParquetWriter();
  return new InvocationFiles(dataFolder, {
    // Jobs end where the log is durable, so nothing else has to be known of it.
    reader: new RecordLogFiles(dataFolder, (traceId, offset, reason) => onDamage({ traceId, at: { offset }, reason })),
    writeLog: (traceId, byteCount, path) =>
      logs.write(join(dataFolder, 'runs', traceId, LOG_FILE), byteCount, path, (line, reason) =>
        onDamage({ traceId, at: { line }, reason }),
      ),
  });
}

/** Traces of several commands that are remembered, and the memory that they may take together, as estimated, in bytes. */
const MAX_TRACES = 16;
const MAX_BYTES = 32 * 1024 * 1024;

/** What the files are written with. */
interface InvocationFilesDeps {
  readonly reader: Pick<RecordLogReader, 'read'>;
  /** Writes the first `byteCount` bytes of a trace's record log as one file, for runs of one command. */
  writeLog(traceId: TraceId, byteCount: number, path: string): Promise<void>;
}

/** What a file holds: of the log up to `endBytes`, the records that the digest tells. */
type FileContent = Pick<PickedPart, 'endBytes' | 'digest'>;

/** A trace of several commands as far as its log was read. */
interface AssignedLog {
  /** Tells the log from one of the same name that was made after it was removed. */
  readonly identity: string;
  readonly assigner: InvocationAssigner;
  readToBytes: number;
  /** What its files are known to hold, by the invocation's position. */
  readonly files: Map<number, FileContent>;
}

/**
 * Writes invocations' Parquet files beside the record log. Reads the log in chunks, whatever its size. What comes late is
 * appended to the file of its invocation, and the others are left alone, as long as no earlier record turns out to belong
 * to another one.
 */
export class InvocationFiles implements ParquetJobWriter {
  /** The one that was written longest ago is the first. */
  private readonly logs = new Map<TraceId, AssignedLog>();

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
    if (invocationCount === 1) {
      this.logs.delete(traceId);
      await this.deps.writeLog(traceId, logBytes, join(folder, only.parquetFile));
      return;
    }
    const log = await this.assign(job);
    for (const { index, parquetFile } of files) await this.bringUpToDate(job, join(folder, parquetFile), index, log);
    this.keep(traceId, log);
  }

  /** Which record belongs to which invocation: what of the log was not read yet is. */
  private async assign({ traceId, logBytes }: ParquetJob): Promise<AssignedLog> {
    const identity = await this.identityOf(traceId);
    const known = this.logs.get(traceId);
    this.logs.delete(traceId);
    const isSame = known?.identity === identity && known.readToBytes <= logBytes;
    const log = isSame ? known : { identity, assigner: new InvocationAssigner(), readToBytes: 0, files: new Map() };
    for await (const chunk of this.deps.reader.read(traceId, { fromOffset: log.readToBytes, toOffset: logBytes })) {
      for (const logged of chunk) log.assigner.add(logged, 0);
    }
    log.readToBytes = logBytes;
    return log;
  }

  private async bringUpToDate(job: ParquetJob, path: string, index: number, log: AssignedLog): Promise<void> {
    const { assigner, files } = log;
    const now: FileContent = { endBytes: job.logBytes, digest: assigner.digestOf(index) };
    const isThere = existsSync(path);
    const known = isThere ? (files.get(index) ?? (await PickedParquet.lastPart(path))) : undefined;
    if (known?.digest !== now.digest) await this.writeRecords(job, path, index, { assigner, known, now });
    files.set(index, now);
  }

  private async writeRecords(
    { traceId, logBytes }: ParquetJob,
    path: string,
    index: number,
    {
      assigner,
      known,
      now,
    }: { readonly assigner: InvocationAssigner; readonly known: FileContent | undefined; readonly now: FileContent },
  ): Promise<void> {
    const own = (range: LogRange) => this.recordsOf(traceId, index, assigner, range);
    let grownBy = 0;
    let digest = known?.digest ?? 0;
    if (known !== undefined && known.endBytes <= logBytes) {
      for await (const records of own({ fromOffset: known.endBytes, toOffset: logBytes })) {
        for (const { offset } of records) digest = (digest + recordDigest(offset)) >>> 0;
        grownBy += records.length;
      }
    }
    // Where an earlier record came or went, the file is made anew.
    const isGrown = known !== undefined && grownBy > 0 && digest === now.digest;
    const file = isGrown ? await PickedParquet.extend(path, known.digest, grownBy) : await PickedParquet.create(path);
    try {
      // Of commands that came one after the other, each is read once.
      const { fromOffset, toOffset } = assigner.rangeOf(index) ?? { fromOffset: 0, toOffset: logBytes };
      for await (const records of own({ fromOffset: Math.max(fromOffset, file.fromOffset), toOffset })) {
        await file.append(records.map(({ record }): TelemetryRecord => record));
      }
      await file.close(now);
    } catch (error) {
      await file.abort();
      throw error;
    }
  }

  private async *recordsOf(traceId: TraceId, index: number, assigner: InvocationAssigner, range: LogRange) {
    for await (const chunk of this.deps.reader.read(traceId, range)) {
      yield chunk.filter((each) => assigner.invocationIndexOf(each) === index);
    }
  }

  /** Keeps what is known of a trace for what may come late, within the bounds. */
  private keep(traceId: TraceId, log: AssignedLog): void {
    this.logs.set(traceId, log);
    let bytes = 0;
    for (const { assigner } of this.logs.values()) bytes += assigner.memoryBytes;
    for (const [oldest, { assigner }] of this.logs) {
      if (this.logs.size <= MAX_TRACES && bytes <= MAX_BYTES) break;
      bytes -= assigner.memoryBytes;
      this.logs.delete(oldest);
    }
  }

  private async identityOf(traceId: TraceId): Promise<string> {
    const { ino, birthtimeMs } = await stat(join(this.dataFolder, 'runs', traceId, LOG_FILE));
    return `${ino} ${birthtimeMs}`;
  }
}
