import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../core/clock.js';
import { packageFile } from '../core/package-file.js';
import { startThread, type Thread } from '../core/thread.js';
import { type FileRange, type LineReject, RangeEncoder, type RangeLimits, type RangeStep } from './line-encoder.js';
import type { LineRowsOptions } from './line-rows.js';
import type { ParquetOutput } from './parquet-writer.js';
import type { RangeStarterCalls, RangeThreadCalls } from './range-worker.js';
import type { EncodedRowGroup } from './row-group.js';

/** A part of a file that one thread encodes: at the engine's usual size of a line, the 100,000 rows of a row group. */
const RANGE_BYTES = 80 * 1024 * 1024;
/** A file that is encoded before a thread has started. */
const SMALL_BYTES = 8 * 1024 * 1024;

/** Which lines are encoded. */
interface LinesToParquet {
  /** Where to begin in the file, at the start of a line; lines are counted from there. Default: 0. */
  readonly fromOffset?: number;
  /** Length of the file as far as it is read; none of its lines begins after it. */
  readonly byteCount: number;
  readonly signal: AbortSignal;
  /** Lines are counted from 1 in the file. */
  readonly onReject: (reject: LineReject) => void;
  readonly onProgress?: (bytesRead: number, recordCount: number) => void;
}

/** How they are encoded. */
interface EncodingOptions {
  /** How many threads may work at a time; 0 to work in this one, between other things. */
  readonly threads: number;
  readonly limits: RangeLimits;
  /** As in `LineRowsOptions`; threads have their own. */
  readonly toModern: LineRowsOptions['toModern'];
}

/** The result of encoding a range. */
interface Part {
  readonly lineCount: number;
  readonly rejects: readonly LineReject[];
  readonly groups: readonly EncodedRowGroup[];
}

/** Something that encodes one range at a time: a thread, or this one. */
interface Encoder {
  encode(file: number, range: FileRange, onStep: (step: RangeStep) => void): Promise<void>;
}

/**
 * Encodes the lines of an open JSONL file and writes them in their order. Several threads encode a part each; what is
 * ready before its turn, at most two parts a thread, waits in compressed form.
 * @param file the open file's descriptor
 * @throws what the file systems throw, and the signal's reason.
 */
export async function jsonlToParquet(
  file: number,
  output: ParquetOutput,
  { limits, toModern, ...options }: LinesToParquet & EncodingOptions,
): Promise<void> {
  const { signal, byteCount, fromOffset = 0 } = options;
  signal.throwIfAborted();
  const ranges = rangesOf(fromOffset, byteCount);
  const threads = byteCount - fromOffset <= SMALL_BYTES ? 0 : Math.min(options.threads, ranges.length);
  if (threads === 0) return jsonlToParquetHere(new RangeEncoder(limits, toModern), file, output, options);
  const encoders = Array.from({ length: threads }, () => new RangeThread(limits));
  const endAll = () => Promise.all(encoders.map((encoder) => encoder.end()));
  signal.addEventListener('abort', endAll);
  try {
    await writeParts(encoders, ranges, file, output, options);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', endAll);
    await endAll();
  }
}

/**
 * The same in this thread, between the other things that it does.
 * @param encoder does one range at a time
 */
export async function jsonlToParquetHere(
  encoder: RangeEncoder,
  file: number,
  output: ParquetOutput,
  options: LinesToParquet,
): Promise<void> {
  const ranges = rangesOf(options.fromOffset ?? 0, options.byteCount);
  await writeParts([new OwnThread(encoder, options.signal)], ranges, file, output, options);
}

async function writeParts(
  encoders: readonly Encoder[],
  ranges: readonly FileRange[],
  file: number,
  output: ParquetOutput,
  { onReject, onProgress }: LinesToParquet,
): Promise<void> {
  const written: Promise<void>[] = [];
  const ahead = 2 * encoders.length;
  let next = 0;
  let bytesRead = 0;
  let recordCount = 0;
  let linesBefore = 0;
  await Promise.all(encoders.map(work));
  await written.at(-1);

  async function work(encoder: Encoder): Promise<void> {
    for (let index = next++; index < ranges.length; index = next++) {
      const part = encode(encoder, index);
      const writing = write(part, written[index - 1]);
      written[index] = writing;
      // Callers that wait for a later part get the error.
      writing.catch(() => {});
      await part;
    }
  }

  async function encode(encoder: Encoder, index: number): Promise<Part> {
    await written[index - ahead];
    const part = { lineCount: 0, rejects: [] as LineReject[], groups: [] as EncodedRowGroup[] };
    await encoder.encode(file, ranges[index] ?? WHOLE, (step) => {
      part.lineCount = step.lineCount;
      for (const reject of step.rejects) part.rejects.push(reject);
      for (const group of step.groups) part.groups.push(group);
      bytesRead += step.bytesRead;
      recordCount += step.recordCount;
      onProgress?.(bytesRead, recordCount);
    });
    return part;
  }

  async function write(encoding: Promise<Part>, before: Promise<void> | undefined): Promise<void> {
    const part = await encoding;
    await before;
    for (const { line, reason } of part.rejects) onReject({ line: linesBefore + line, reason });
    linesBefore += part.lineCount;
    for (const group of part.groups) await output.write(group);
  }
}

const WHOLE: FileRange = { fromOffset: 0, toOffset: Number.POSITIVE_INFINITY };

/** Equal parts, an even number of them so that two or four threads end together. */
function rangesOf(first: number, end: number): readonly FileRange[] {
  const byteCount = end - first;
  const least = Math.ceil(byteCount / RANGE_BYTES);
  const count = least <= 1 ? 1 : 2 * Math.ceil(least / 2);
  const size = Math.ceil(byteCount / count);
  return Array.from({ length: count }, (_, index) => ({
    fromOffset: first + index * size,
    toOffset: index === count - 1 ? end : first + (index + 1) * size,
  }));
}

/** Encodes between the other things that this thread does. */
class OwnThread implements Encoder {
  constructor(
    private readonly encoder: RangeEncoder,
    private readonly signal: AbortSignal,
  ) {}

  async encode(file: number, range: FileRange, onStep: (step: RangeStep) => void): Promise<void> {
    for (const step of this.encoder.encode(file, range)) {
      onStep(step);
      await setImmediate();
      this.signal.throwIfAborted();
    }
  }
}

/** A thread that encodes ranges of files, one at a time. It has about 15 MB of its own; `end` gives them back. */
class RangeThread implements Encoder {
  private readonly thread: Thread<RangeThreadCalls>;
  private onStep: (step: RangeStep) => void = () => {};

  constructor(limits: RangeLimits) {
    this.thread = startThread<RangeThreadCalls, RangeStarterCalls>(
      {
        entry: packageFile('dist/range-worker.js'),
        clock: systemClock,
        workerData: limits,
        // Options of the process itself, such as what its script is, are not meant for the thread.
        execArgv: [],
        endMessage: () => 'the Parquet thread has ended',
      },
      { step: (step) => this.onStep(step) },
    );
  }

  /**
   * Encodes a range of an open file, which has to stay open.
   * @throws what the file system throws when the file cannot be read.
   */
  async encode(file: number, range: FileRange, onStep: (step: RangeStep) => void): Promise<void> {
    this.onStep = onStep;
    await this.thread.channel.ask('encode', { file, range });
  }

  /** Ends the thread, whatever it does. */
  async end(): Promise<void> {
    await this.thread.terminate();
  }
}
