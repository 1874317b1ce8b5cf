import { readFileSync } from 'node:fs';
import { parseRecordLine } from '../../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../../src/record/telemetry-record.js';
import { readParquetRows } from '../../../../src/sink/parquet/parquet-reader.js';
import { ParquetWriter } from '../../../../src/sink/parquet/parquet-writer.js';
import { type Row, recordFromRow } from '../../../../src/sink/parquet/record-from-row.js';
import type { ParquetWriterLimits } from '../../../../src/sink/parquet/row-group-limits.js';

/** The real runs that come with a Parquet file of the engine. */
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
  return new URL(`../../../fixture/samples/${sample}/${file}`, import.meta.url).pathname;
}

export function sampleLines(sample: string): string[] {
  return readFileSync(samplePath(sample, 'otel.jsonl'), 'utf8').trimEnd().split('\n');
}

export function sampleRecords(sample: string): TelemetryRecord[] {
  return sampleLines(sample).map(parseRecordLine);
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
