import type { Clock } from '../component/clock.js';
import type { RecordConsumer } from '../record/record-consumer.js';
import { joinBatches } from './join-batches.js';
import { offerDelivery } from './offer-delivery.js';
import { openSource } from './open-source.js';
import type { OtlpReading } from './otlp-json-file.js';
import { type ReadingProgress, type ReadingResult, ReadingTally } from './reading-tally.js';

/** What importing needs and tells. */
export interface ImportOptions {
  readonly otlp: OtlpReading;
  readonly clock: Clock;
  /** Stops the import between two chunks; what was taken stays, and importing again is safe. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ReadingProgress & { readonly path: string }) => void;
}

/**
 * Hands files to a consumer as if their records were received now: JSONL, Parquet and OTLP JSON lines, in the order
 * named. All of them are opened first, so that a misspelt name is told before anything is taken.
 * @throws SourceError for a file that cannot be read, ConsumeError when the consumer does not take the records.
 */
export async function importPaths(
  paths: readonly string[],
  consumer: RecordConsumer,
  options: ImportOptions,
): Promise<ReadingResult> {
  const sources = await Promise.all(paths.map((path) => openSource(path, options.otlp)));
  const totalBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0);
  const tally = new ReadingTally();
  let finishedBytes = 0;
  for (const source of sources) {
    for await (const chunk of source.read(options.signal)) {
      await offerDelivery(consumer, joinBatches(chunk.delivery), options.clock, options.signal);
      tally.add(chunk, sources.length > 1 ? source.path : '');
      options.onProgress?.({ ...tally.progress(finishedBytes + chunk.bytesRead, totalBytes), path: source.path });
    }
    finishedBytes += source.sizeBytes;
  }
  return tally.result();
}
