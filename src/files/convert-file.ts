import { open, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { otlpReading } from '../cli/otlp-reading.js';
import { ProgressLine, type ReadingProgress } from '../cli/progress-line.js';
import { reasonOf } from '../core/errors.js';
import { MAX_LINE_BYTES } from '../core/lines.js';
import { type DeliveryWriter, JsonlWriter, OtlpJsonWriter } from '../log/delivery-writer.js';
import { modernRecord } from '../otlp/create-decoding.js';
import { jsonlToParquet } from '../parquet/jsonl-parquet.js';
import { ParquetDeliveryWriter, ParquetOutput } from '../parquet/parquet-writer.js';
import { DEFAULT_LIMITS } from '../parquet/row-group.js';
import { type FileFormat, formatByEnding } from './file-format.js';
import { JsonlFile, unreadable } from './jsonl-file.js';
import { openSource } from './open-source.js';
import type { OtlpReading } from './otlp-json-file.js';
import { compressionOf } from './read-bytes.js';
import { tooLongReason } from './read-record.js';
import { ReadingCounter, type ReadingResult, reportReading } from './reading-counter.js';

/** Why a file cannot be converted. */
export type ConvertErrorCode = 'sameFile' | 'unwritable';

/** A file cannot be converted; the message says what to do. Problems with the input file are a `SourceError`. */
export class ConvertError extends CliError {
  override readonly name = 'ConvertError';
  constructor(
    readonly code: ConvertErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(EXIT.failed, message, options);
  }
}

/** Options of a conversion. */
export interface ConvertOptions {
  readonly otlp: OtlpReading;
  /** Stops the conversion and removes the incomplete output. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ReadingProgress) => void;
  /** The most threads to start for a large file. Default 0: everything is done in this thread. */
  readonly threads?: number;
}

/**
 * Converts a file between the engine's JSONL, Parquet and OTLP JSON lines, chosen by the file names' endings, in one pass and in bounded memory. The output appears when it is complete. Telemetry of
 * other services fits into OTLP only; for other formats it is counted and left out. `docs/reference/records.md` says what each format cannot carry.
 * @throws SourceError for the input file, ConvertError for the output
 */
export async function convertFile(inPath: string, outPath: string, options: ConvertOptions): Promise<ReadingResult> {
  const source = await openSource(inPath, options.otlp);
  const outFormat = formatByEnding(outPath);
  await refuseSameFile(inPath, outPath);
  // A pipe or compressed file can be read only once and in order, so threads cannot share it; it is read as records.
  const isPlain = source.sizeBytes > 0 && compressionOf(inPath) === undefined;
  if (source instanceof JsonlFile && isPlain && outFormat === 'parquet') {
    return jsonlToParquetFile(source, outPath, options);
  }
  const writer = await writable(outPath, () => createWriter(outPath, outFormat, options.otlp));
  const counter = new ReadingCounter();
  try {
    for await (const chunk of source.read(options.signal)) {
      await writer.write(chunk.delivery);
      counter.add(chunk);
      options.onProgress?.(counter.progress(chunk.bytesRead, source.sizeBytes));
    }
    await writer.close();
  } catch (error) {
    await writer.abort();
    throw error;
  }
  return counter.result();
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

async function jsonlToParquetFile(
  { path, sizeBytes }: JsonlFile,
  outPath: string,
  { signal, threads = 0, onProgress }: ConvertOptions,
): Promise<ReadingResult> {
  const output = await writable(outPath, () => ParquetOutput.create(outPath));
  const counter = new ReadingCounter();
  try {
    await convertJsonlToParquet(path, output, counter, {
      sizeBytes,
      threads,
      signal,
      onProgress: (bytesRead) => onProgress?.(counter.progress(bytesRead, sizeBytes)),
    });
    await output.close();
  } catch (error) {
    await output.abort();
    throw error;
  }
  return counter.result();
}

function createWriter(path: string, format: FileFormat, otlp: OtlpReading): Promise<DeliveryWriter> {
  switch (format) {
    case 'jsonl':
      return JsonlWriter.create(path);
    case 'otlpJson':
      return OtlpJsonWriter.create(path, otlp.codec);
    case 'parquet':
      return ParquetDeliveryWriter.create(path);
  }
}

/** @throws ConvertError if the file cannot be created */
async function writable<T>(path: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new ConvertError('unwritable', `cannot write ${path}: ${reason}. Check that its folder exists`, { cause });
  }
}

/** Options of a direct conversion from JSONL to Parquet. */
interface ConversionOptions {
  readonly sizeBytes: number;
  readonly threads: number;
  readonly signal: AbortSignal;
  readonly onProgress: (bytesRead: number) => void;
}

/**
 * Converts JSONL to Parquet directly from bytes to columns, in threads. The result has the same cells, rejects and counts as reading records and writing them.
 * @throws SourceError if the file cannot be read
 */
export async function convertJsonlToParquet(
  path: string,
  output: ParquetOutput,
  counter: ReadingCounter,
  { sizeBytes, threads, signal, onProgress }: ConversionOptions,
): Promise<void> {
  const file = await open(path, 'r').catch((cause) => {
    throw unreadable(path, cause);
  });
  let counted = 0;
  try {
    await jsonlToParquet(file.fd, output, {
      // Bytes that are appended during the conversion are read as well.
      byteCount: Math.max(sizeBytes, (await file.stat()).size),
      threads,
      toModern: modernRecord,
      signal,
      limits: { ...DEFAULT_LIMITS, maxLineBytes: MAX_LINE_BYTES, isRecordLog: false },
      onReject: ({ line, reason }) =>
        counter.addReject({ place: `line ${line}`, reason: reason ?? tooLongReason(MAX_LINE_BYTES), count: 1 }),
      onProgress(bytesRead, recordCount) {
        counter.addRecords(recordCount - counted);
        counted = recordCount;
        onProgress(Math.min(bytesRead, sizeBytes));
      },
    });
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    await file.close();
  }
}

/** More would only wait for the disk, and each holds a row group. */
const MAX_THREADS = 4;

/** What `run-bridge convert` does. @throws SourceError, ConvertError */
export async function convert({ context, operands: [inPath = '', outPath = ''] }: Invocation): Promise<ExitCode> {
  const progress = new ProgressLine(context);
  const result = await convertFile(inPath, outPath, {
    otlp: otlpReading([]),
    signal: context.stop,
    threads: Math.min(MAX_THREADS, availableParallelism()),
    onProgress: (at) => progress.show(at),
  }).finally(() => progress.end());
  return reportReading(result, { done: `wrote ${outPath}` }, context.stderr) ? EXIT.ok : EXIT.unreadable;
}
