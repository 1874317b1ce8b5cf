import type { Clock } from '../component/clock.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../record/record-consumer.js';
import { joinBatches } from './join-batches.js';
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

/** How often a chunk is offered again to a consumer that cannot take more just now. */
const MAX_ATTEMPTS = 20;

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
      await offer(consumer, joinBatches(chunk.delivery), options);
      tally.add(chunk, sources.length > 1 ? source.path : '');
      options.onProgress?.({ ...tally.progress(finishedBytes + chunk.bytesRead, totalBytes), path: source.path });
    }
    finishedBytes += source.sizeBytes;
  }
  return tally.result();
}

async function offer(consumer: RecordConsumer, delivery: Delivery, options: ImportOptions): Promise<void> {
  if (delivery.batches.length === 0 && delivery.foreign.length === 0) return;
  for (let attempt = 1; ; attempt++) {
    options.signal.throwIfAborted();
    try {
      return await consumer.consume(delivery);
    } catch (error) {
      const isPassing = error instanceof ConsumeError && error.code !== 'refused';
      if (!isPassing || attempt === MAX_ATTEMPTS) throw error;
      await pause(error.retryAfterMs, options);
    }
  }
}

function pause(delayMs: number, { clock, signal }: ImportOptions): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
    function done() {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}
