import type { ReadingProgress } from '../cli/progress-line.js';
import type { Clock } from '../core/clock.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { findPaths } from './find-paths.js';
import { openSource } from './open-source.js';
import type { OtlpReading } from './otlp-json-file.js';
import { offerRead } from './patient-consumer.js';
import { type ReadingResult, ReadingTally } from './reading-tally.js';
import { joinBatches, type RecordSource, type Reject, SourceError } from './record-source.js';

/** What importing needs and tells. */
export interface ImportOptions {
  readonly otlp: OtlpReading;
  readonly clock: Clock;
  /** Where relative paths begin. */
  readonly workingDir: string;
  /** Stops the import between two chunks; what was taken stays, and importing again is safe. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ReadingProgress & { readonly path: string }) => void;
  /** Is given what cannot be read, in the order of the files, and waited for. */
  readonly onRejects?: (path: string, rejects: readonly Reject[]) => Promise<void>;
}

/** What an import took. */
export interface ImportResult extends ReadingResult {
  readonly fileCount: number;
  /** What was read, in bytes as it lies on the disk; 0 for pipes. */
  readonly byteCount: number;
}

/** What is taken of a folder. Other JSON lies in the engine's folders, too; it can be named. */
const NAMES = '*.{jsonl,ndjson,parquet,jsonl.gz,ndjson.gz,jsonl.zst,ndjson.zst}';

/**
 * Hands files to a consumer as if their records were received now: JSONL, Parquet and OTLP JSON lines, packed or not, in
 * the order named. All of them are found and opened first, so that a misspelt name is reported before anything is read. Of
 * several files one that is damaged is passed over, as a reject.
 * @param operands paths, folders and patterns.
 * @throws SourceError for the only file when it cannot be read, ConsumeError when the consumer does not take the records.
 */
export async function importPaths(
  operands: readonly string[],
  consumer: RecordConsumer,
  options: ImportOptions,
): Promise<ImportResult> {
  const sources = await openAll(operands, options);
  const totalBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0);
  const tally = new ReadingTally();
  let finishedBytes = 0;
  for (const source of sources) {
    try {
      for await (const chunk of source.read(options.signal)) {
        await offerRead(consumer, joinBatches(chunk.delivery), options);
        tally.add(chunk, sources.length > 1 ? source.path : '');
        if (chunk.rejects.length > 0) await options.onRejects?.(source.path, chunk.rejects);
        options.onProgress?.({ ...tally.progress(finishedBytes + chunk.bytesRead, totalBytes), path: source.path });
      }
    } catch (error) {
      if (!(error instanceof SourceError) || sources.length === 1) throw error;
      const reject = { place: 'the file', reason: error.message, count: 1 };
      tally.addReject({ ...reject, place: source.path });
      await options.onRejects?.(source.path, [reject]);
    }
    finishedBytes += source.sizeBytes;
  }
  return { ...tally.result(), fileCount: sources.length, byteCount: finishedBytes };
}

async function openAll(operands: readonly string[], options: ImportOptions): Promise<readonly RecordSource[]> {
  const paths = new Set<string>();
  for (const operand of operands) {
    for (const path of await findPaths(operand, { workingDir: options.workingDir, names: NAMES })) paths.add(path);
  }
  const sources: RecordSource[] = [];
  for (const path of paths) sources.push(await openSource(path, options.otlp));
  return sources;
}
