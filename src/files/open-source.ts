import { stat } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { ParquetReadError, readParquetRows } from '../parquet/parquet-reader.js';
import { RowParseError, recordFromRow } from '../parquet/record-from-row.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { formatOfFile } from './file-format.js';
import { JsonlFile, unreadable } from './jsonl-file.js';
import { OtlpJsonFile, type OtlpReading } from './otlp-json-file.js';
import { batchesOf, type RecordSource, type Reject, type SourceChunk, SourceError } from './record-source.js';

/**
 * Opens the source for a path: JSONL, Parquet or OTLP JSON lines.
 * @throws SourceError if it does not exist, is a folder, or has an unknown format
 */
export async function openSource(path: string, otlp: OtlpReading): Promise<RecordSource> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) {
      throw new SourceError('unreadable', `${path} is a folder. Name the files in it, for example ${path}/*.jsonl`);
    }
    const sizeBytes = found.isFile() ? found.size : 0;
    switch (await formatOfFile(path, !found.isFile())) {
      case 'jsonl':
        return new JsonlFile(path, sizeBytes);
      case 'otlpJson':
        return new OtlpJsonFile(path, sizeBytes, otlp);
      case 'parquet':
        return new ParquetFile(path, sizeBytes);
    }
  } catch (cause) {
    throw sourceError(path, cause);
  }
}

function sourceError(path: string, cause: unknown): unknown {
  if (errorCode(cause) === 'ENOENT') {
    return new SourceError('notFound', `${path} does not exist. Check the path`, { cause });
  }
  return unreadable(path, cause);
}

/** A Parquet file of the engine or of this program as a source. A row that is no record becomes a reject and is skipped. */
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
        yield { delivery: { batches: batchesOf(records), passthrough: [] }, rejects, bytesRead };
      }
    } catch (cause) {
      if (cause instanceof ParquetReadError) throw new SourceError('unreadable', cause.message, { cause });
      throw unreadable(this.path, cause);
    }
  }
}
