import { modernRecord } from '../otlp/create-decoding.js';
import { ParquetReadError, readParquetRows } from '../parquet/parquet-reader.js';
import { RowParseError, recordFromRow } from '../parquet/record-from-row.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { batchesOf } from './batch-builder.js';
import { unreadable } from './jsonl-file.js';
import { type RecordSource, type Reject, type SourceChunk, SourceError } from './record-source.js';

/** The engine's Parquet, or our own, as a source. A row that is no record is told as a reject and passed over. */
export class ParquetFile implements RecordSource {
  constructor(
    readonly path: string,
    readonly sizeBytes: number,
  ) {}

  async *read(signal: AbortSignal): AsyncGenerator<SourceChunk> {
    try {
      for await (const { rows, firstRow, totalRows } of readParquetRows(this.path)) {
        signal.throwIfAborted();
        const records: TelemetryRecord[] = [];
        const rejects: Reject[] = [];
        for (const [index, row] of rows.entries()) {
          try {
            records.push(modernRecord(recordFromRow(row)));
          } catch (error) {
            if (!(error instanceof RowParseError)) throw error;
            rejects.push({ place: `row ${firstRow + index}`, reason: error.message, count: 1 });
          }
        }
        const bytesRead = Math.floor((this.sizeBytes * (firstRow + rows.length)) / totalRows);
        yield { delivery: { batches: batchesOf(records), foreign: [] }, rejects, bytesRead };
      }
    } catch (cause) {
      if (cause instanceof ParquetReadError) throw new SourceError('unreadable', cause.message, { cause });
      throw unreadable(this.path, cause);
    }
  }
}
