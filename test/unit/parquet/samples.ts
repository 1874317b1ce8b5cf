import { join, resolve } from 'node:path';
import { readParquetRows } from '../../../src/parquet/parquet-reader.js';
import { ParquetWriter } from '../../../src/parquet/parquet-writer.js';
import { type Row, recordFromRow } from '../../../src/parquet/record-from-row.js';
import type { ParquetWriterLimits } from '../../../src/parquet/row-group.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { sampleFolder } from '../../fake/sample-run.js';

export { sampleLines, sampleRecords } from '../../fake/sample-run.js';

/** The small real runs that come with a Parquet file of the engine; the large ones are read by pyarrow and DuckDB in `test/engine/parquet-pyarrow.test.ts`. */
export const SAMPLES_WITH_PARQUET = [
  'build-clean',
  'build-mixed',
  'build-mixed-fusion',
  'fail-fast',
  'interrupted',
  'joined',
  'parse',
] as const;

export function samplePath(sample: string, file: string): string {
  return join(resolve(sampleFolder(sample)), file);
}

export async function writeParquet(path: string, records: readonly TelemetryRecord[], limits?: ParquetWriterLimits) {
  const writer = await ParquetWriter.create(path, limits);
  await writer.append(records);
  return writer.close();
}

export async function rowsOf(path: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const chunk of readParquetRows(path)) rows.push(...chunk.rows);
  return rows;
}

export async function recordsOf(path: string): Promise<TelemetryRecord[]> {
  return (await rowsOf(path)).map(recordFromRow);
}
