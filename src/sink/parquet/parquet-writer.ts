import type { TelemetryRecord } from '../../record/telemetry-record.js';
import { type ParquetFileInfo, ParquetOutput } from './parquet-output.js';
import { RecordRows } from './record-rows.js';
import { RowGroupColumns } from './row-group-columns.js';
import { DEFAULT_LIMITS, isGroupFull, type ParquetWriterLimits } from './row-group-limits.js';

/**
 * Writes records as a Parquet file with the engine's columns, types, encodings and Arrow schema. Holds one row group at a
 * time, compressed, so memory does not grow with the run. The file appears under its name only when it is complete.
 */
export class ParquetWriter {
  private readonly columns = new RowGroupColumns();
  private readonly rows = new RecordRows(this.columns);

  /** Begins a file. @throws when it cannot be created. */
  static async create(path: string, limits: ParquetWriterLimits = DEFAULT_LIMITS): Promise<ParquetWriter> {
    return new ParquetWriter(await ParquetOutput.create(path), limits);
  }

  private constructor(
    private readonly output: ParquetOutput,
    private readonly limits: ParquetWriterLimits,
  ) {}

  async append(records: Iterable<TelemetryRecord>): Promise<void> {
    for (const record of records) {
      this.rows.append(record);
      if (isGroupFull(this.columns, this.limits)) await this.output.write(this.columns.finish());
    }
  }

  /** Writes what is left and the footer, syncs and gives the file its name. */
  async close(): Promise<ParquetFileInfo> {
    if (this.columns.rowCount > 0) await this.output.write(this.columns.finish());
    return this.output.close();
  }

  /** Gives up: removes the partial file, leaves an earlier file of that name alone. */
  async abort(): Promise<void> {
    await this.output.abort();
  }
}
