import type { FileMetaData } from 'hyparquet';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { LineRows } from './line-rows.js';
import { type ParquetFileInfo, ParquetOutput } from './parquet-output.js';
import { RowGroupColumns } from './row-group-columns.js';
import { DEFAULT_LIMITS, isGroupFull, type ParquetWriterLimits } from './row-group-limits.js';

/**
 * Writes records as a Parquet file with the engine's columns, types, encodings and Arrow schema. Holds one row group at a
 * time, compressed, so memory does not grow with the run. The file appears under its name only when it is complete.
 */
export class ParquetWriter {
  private readonly columns = new RowGroupColumns();
  private readonly rows = new LineRows(this.columns, { isModern: true, toModern: (record) => record });

  /** Begins a file. @throws when it cannot be created. */
  static async create(path: string, limits: ParquetWriterLimits = DEFAULT_LIMITS): Promise<ParquetWriter> {
    return new ParquetWriter(await ParquetOutput.create(path), limits);
  }

  /** Begins a file with the first row groups of the one that has the name now. @throws as `ParquetOutput.extend` */
  static async extend(path: string, metadata: FileMetaData, groupCount: number): Promise<ParquetWriter> {
    return new ParquetWriter(await ParquetOutput.extend(path, metadata, groupCount), DEFAULT_LIMITS);
  }

  private constructor(
    private readonly output: ParquetOutput,
    private readonly limits: ParquetWriterLimits,
  ) {}

  async append(records: Iterable<TelemetryRecord>): Promise<void> {
    for (const record of records) {
      this.rows.appendRecord(record);
      if (isGroupFull(this.columns, this.limits)) await this.output.write(this.columns.finish());
    }
  }

  /** Writes what is left as a row group. @returns how many row groups there are */
  async finishGroup(): Promise<number> {
    if (this.columns.rowCount > 0) await this.output.write(this.columns.finish());
    return this.output.rowGroupCount;
  }

  /** Writes what is left and the footer, syncs and gives the file its name. @param note as in `ParquetOutput.close` */
  async close(note?: string): Promise<ParquetFileInfo> {
    await this.finishGroup();
    return this.output.close(note);
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.output.abort();
  }
}
