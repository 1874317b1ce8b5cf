import type { ReadingProgress } from '../cli/progress-line.js';
import type { Clock } from '../core/clock.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { findPaths } from './find-paths.js';
import { openSource } from './open-source.js';
import type { OtlpReading } from './otlp-json-file.js';
import { ReadingCounter, type ReadingResult } from './reading-counter.js';
import { joinBatches, type RecordSource, type Reject, SourceError } from './record-source.js';
import { offerRead } from './retrying-consumer.js';

/** Options of an import. */
export interface ImportOptions {
  readonly otlp: OtlpReading;
  readonly clock: Clock;
  /** The folder that relative paths are relative to. */
  readonly workingDir: string;
  /** Stops the import between two chunks; consumed records stay, and importing again is safe. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ReadingProgress & { readonly path: string }) => void;
  /** Called and awaited with what cannot be read, in the order of the files. */
  readonly onRejects?: (path: string, rejects: readonly Reject[]) => Promise<void>;
}

/** The result of an import. */
export interface ImportResult extends ReadingResult {
  readonly fileCount: number;
  /** Bytes read, compressed if the file is; 0 for pipes. */
  readonly byteCount: number;
}

/** Files in a folder that are imported. The engine's folders have other JSON, too, which can be named explicitly. */
const NAMES = '*.{jsonl,ndjson,parquet,jsonl.gz,ndjson.gz,jsonl.zst,ndjson.zst}';

/**
 * Imports files as if their records were received now: JSONL, Parquet and OTLP JSON lines, compressed or not, in the order named. All files are found and opened first, so that a misspelt name is
 * reported before anything is read. If there are several, a damaged one is skipped and reported as a reject.
 * @param operands paths, folders and patterns
 * @throws SourceError if the only file cannot be read; ConsumeError if the consumer refuses the records
 */
export async function importPaths(
  operands: readonly string[],
  consumer: RecordConsumer,
  options: ImportOptions,
): Promise<ImportResult> {
  const sources = await openAll(operands, options);
  const totalBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0);
  const counter = new ReadingCounter();
  let finishedBytes = 0;
  for (const source of sources) {
    try {
      for await (const chunk of source.read(options.signal)) {
        await offerRead(consumer, joinBatches(chunk.delivery), options);
        counter.add(chunk, sources.length > 1 ? source.path : '');
        if (chunk.rejects.length > 0) await options.onRejects?.(source.path, chunk.rejects);
        options.onProgress?.({ ...counter.progress(finishedBytes + chunk.bytesRead, totalBytes), path: source.path });
      }
    } catch (error) {
      if (!(error instanceof SourceError) || sources.length === 1) throw error;
      const reject = { place: 'the file', reason: error.message, count: 1 };
      counter.addReject({ ...reject, place: source.path });
      await options.onRejects?.(source.path, [reject]);
    }
    finishedBytes += source.sizeBytes;
  }
  return { ...counter.result(), fileCount: sources.length, byteCount: finishedBytes };
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
