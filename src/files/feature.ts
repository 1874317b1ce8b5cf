import type { OtlpReading } from './otlp-json-file.js';
import type { RecordSource } from './record-source.js';

// The door of the readers of files and pipes: other folders import only this file. The Parquet reader is loaded when it is needed.

export { JsonlTail, type TailChunk } from './jsonl-tail.js';
export { OtlpJsonFile, type OtlpReading } from './otlp-json-file.js';
export { LineReader, readRecords } from './read-record.js';
export { ReadingCounter } from './reading-counter.js';
export { batchesOf, type RecordSource, type Reject, SourceError } from './record-source.js';
export { REJECTS_FILE, RejectFile } from './reject-file.js';
export { offerRead, RetryingConsumer } from './retrying-consumer.js';
export { endPosition, startPosition, type TailPosition } from './tail-position.js';

/** A Parquet file as a source of records. @param sizeBytes its length */
export async function openParquetFile(path: string, sizeBytes: number): Promise<RecordSource> {
  const { ParquetFile } = await import('./open-source.js');
  return new ParquetFile(path, sizeBytes);
}

/** Opens a telemetry file in any known format, compressed or not. @throws SourceError */
export async function openTelemetryFile(path: string, otlp: OtlpReading): Promise<RecordSource> {
  const { openSource } = await import('./open-source.js');
  return openSource(path, otlp);
}
