import { join } from 'node:path';
import type { RecordConsumer } from '../record/record-batch.js';
import type { ConvertOptions } from './convert-file.js';
import type { FileFollower, FollowerDeps } from './file-follower.js';
import type { ImportOptions, ImportResult } from './import-paths.js';
import type { OtlpReading } from './otlp-json-file.js';
import type { ReadingResult } from './reading-tally.js';
import type { RecordSource } from './record-source.js';

// The door of what reads files and pipes: no other folder imports anything else of this one. What reads Parquet is loaded when it is needed.

export { JsonlTail, type TailChunk } from './jsonl-tail.js';
export { OtlpJsonFile, type OtlpReading } from './otlp-json-file.js';
export { offerRead, PatientConsumer } from './patient-consumer.js';
export { readRecords } from './read-record.js';
export { type ReadingProgress, type ReadingResult, ReadingTally } from './reading-tally.js';
export { RecordPipe } from './record-pipe.js';
export { batchesOf, type RecordSource, type Reject, SourceError } from './record-source.js';
export { REJECTS_FILE, RejectFile } from './reject-file.js';
export { endPosition, startPosition, type TailPosition } from './tail-position.js';

/** Converts a file between JSONL, Parquet and OTLP JSON lines. @throws SourceError, ConvertError */
export async function convertFile(inPath: string, outPath: string, options: ConvertOptions): Promise<ReadingResult> {
  const convert = await import('./convert-file.js');
  return convert.convertFile(inPath, outPath, options);
}

/** Reads files, and those of folders and patterns. @throws SourceError, ConsumeError */
export async function importPaths(
  operands: readonly string[],
  consumer: RecordConsumer,
  options: ImportOptions,
): Promise<ImportResult> {
  const importing = await import('./import-paths.js');
  return importing.importPaths(operands, consumer, options);
}

/**
 * Follows files while they are written. The data folder keeps how far each was read.
 * @param operands files, folders and patterns
 * @param url of the bridge to which records are sent; empty where they stay here
 */
export async function createFollower(
  operands: readonly string[],
  { dataFolder, url }: { readonly dataFolder: string; readonly url: string },
  deps: Omit<FollowerDeps, 'positions'>,
): Promise<FileFollower> {
  const [{ FileFollower }, { FollowPositions, POSITIONS_FOLDER }] = await Promise.all([
    import('./file-follower.js'),
    import('./follow-positions.js'),
  ]);
  const positions = new FollowPositions(join(dataFolder, POSITIONS_FOLDER), url);
  await positions.prune(deps.clock.nowUnixMs());
  return new FileFollower(operands, { ...deps, positions });
}

/** A Parquet file as a source of records. @param sizeBytes its length */
export async function openParquetFile(path: string, sizeBytes: number): Promise<RecordSource> {
  const { ParquetFile } = await import('./open-source.js');
  return new ParquetFile(path, sizeBytes);
}

/** A file of telemetry in any format that is known, packed or not. @throws SourceError */
export async function openTelemetryFile(path: string, otlp: OtlpReading): Promise<RecordSource> {
  const { openSource } = await import('./open-source.js');
  return openSource(path, otlp);
}
