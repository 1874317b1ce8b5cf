import { stat } from 'node:fs/promises';
import type { DeliveryWriter } from '../sink/delivery-writer.js';
import { JsonlWriter } from '../sink/jsonl-writer.js';
import { OtlpJsonWriter } from '../sink/otlp-json-writer.js';
import { ParquetDeliveryWriter } from '../sink/parquet/parquet-delivery-writer.js';
import { ConvertError } from './convert-error.js';
import { formatByEnding } from './file-format.js';
import { openSource } from './open-source.js';
import type { OtlpReading } from './otlp-json-file.js';
import { type ReadingProgress, type ReadingResult, ReadingTally } from './reading-tally.js';

/** What converting needs and tells. */
export interface ConvertOptions {
  readonly otlp: OtlpReading;
  /** Stops the conversion; nothing is left under the new name then. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ReadingProgress) => void;
}

/**
 * Converts a file between the engine's JSONL, its Parquet and OTLP JSON lines, each told by its ending, in one pass and
 * in bounded memory. The new file appears when it is complete. Only OTLP holds telemetry of other services: for another
 * format it is counted and left out. `docs/formats.md` says what each format cannot carry.
 * @throws SourceError for the file that is read, ConvertError for the one that is written.
 */
export async function convertFile(inPath: string, outPath: string, options: ConvertOptions): Promise<ReadingResult> {
  const source = await openSource(inPath, options.otlp);
  const outFormat = formatByEnding(outPath);
  await refuseSameFile(inPath, outPath);
  const writer = await createWriter(outPath, outFormat, options.otlp);
  const tally = new ReadingTally();
  try {
    for await (const chunk of source.read(options.signal)) {
      await writer.write(chunk.delivery);
      tally.add(chunk);
      options.onProgress?.(tally.progress(chunk.bytesRead, source.sizeBytes));
    }
    await writer.close();
  } catch (error) {
    await writer.abort();
    throw error;
  }
  return tally.result();
}

async function refuseSameFile(inPath: string, outPath: string): Promise<void> {
  const [input, output] = await Promise.all([stat(inPath), stat(outPath).catch(() => undefined)]);
  if (output?.isDirectory()) {
    throw new ConvertError('unwritable', `${outPath} is a folder. Name the file to write`);
  }
  if (output !== undefined && input.dev === output.dev && input.ino === output.ino) {
    throw new ConvertError('sameFile', `${inPath} and ${outPath} are the same file. Write to another name`);
  }
}

async function createWriter(
  path: string,
  format: ReturnType<typeof formatByEnding>,
  otlp: OtlpReading,
): Promise<DeliveryWriter> {
  try {
    switch (format) {
      case 'jsonl':
        return await JsonlWriter.create(path);
      case 'otlpJson':
        return await OtlpJsonWriter.create(path, otlp.codec);
      case 'parquet':
        return await ParquetDeliveryWriter.create(path);
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConvertError('unwritable', `cannot write ${path}: ${reason}. Check that its folder exists`, { cause });
  }
}
