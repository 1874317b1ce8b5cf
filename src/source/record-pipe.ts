import type { Clock } from '../component/clock.js';
import type { RecordConsumer } from '../record/record-batch.js';
import { rejectLine } from './line-reject.js';
import { type ByteLine, MAX_LINE_BYTES } from './line-splitter.js';
import { textOf } from './line-stream.js';
import { PipeLines, type PipePart } from './pipe-lines.js';
import { PipeStore } from './pipe-store.js';
import { readRecord } from './read-record.js';
import type { Reject } from './record-source.js';

/** What a pipe works with. */
export interface RecordPipeDeps {
  readonly consumer: RecordConsumer;
  readonly clock: Clock;
  /** Writes to who reads the pipe; resolves when there is room for more, and when nobody reads any more. */
  passOn(bytes: Uint8Array): Promise<void>;
  /** A line that was meant as a record is none; it is passed on. */
  onReject(reject: Reject): Promise<void>;
  /** The records cannot be kept; from here on they are passed on. */
  onFailed(error: unknown): void;
}

/** How a pipe goes about it. */
export interface RecordPipeOptions {
  /** Whether everything is passed on, not only what is no record. */
  readonly isTee: boolean;
  /** The longest line that may be a record, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
}

/**
 * Takes the records out of a stream of lines and passes all else on, byte for byte and in its order. What is not kept is
 * passed on: lines that only look like records, and all records once the consumer has failed. A consumer that is slow is
 * waited for when 8 MiB of lines wait for it.
 */
export class RecordPipe {
  readonly store: PipeStore;
  private readonly lines: PipeLines;
  /** What is to be passed on of the piece that is being taken. */
  private passing: Uint8Array[] = [];

  constructor(
    private readonly options: RecordPipeOptions,
    private readonly deps: RecordPipeDeps,
  ) {
    this.lines = new PipeLines(options.maxLineBytes ?? MAX_LINE_BYTES);
    this.store = new PipeStore(deps.consumer, deps.clock, async (error, lines) => {
      deps.onFailed(error);
      for (const line of lines) this.passOn(line);
      await this.flush();
    });
  }

  /** Reads the stream to its end; resolves when every record was handed over. */
  async run(input: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const bytes of input) {
      if (this.options.isTee) await this.deps.passOn(bytes);
      for (const part of this.lines.push(bytes)) await this.take(part);
      await this.flush();
    }
    for (const part of this.lines.end()) await this.take(part);
    await this.store.drain();
    await this.flush();
  }

  private async take(part: PipePart): Promise<void> {
    switch (part.kind) {
      case 'plain':
        this.passOn(part.bytes);
        return;
      case 'tooLong':
        await this.reject(part.line, `longer than ${this.options.maxLineBytes ?? MAX_LINE_BYTES} bytes`);
        return;
      case 'object':
        await this.takeObject(part.line, part.raw);
    }
  }

  private async takeObject(line: ByteLine, raw: Uint8Array): Promise<void> {
    const read = readRecord(line);
    if ('reason' in read) {
      await this.reject(line, read.reason);
      this.passOn(raw);
    } else if (this.store.hasFailed) {
      // Behind those that waited.
      await this.store.drain();
      this.passOn(raw);
    } else await this.store.add({ record: read, raw });
  }

  /** Another program's JSON is no reject. */
  private async reject(line: ByteLine, reason: string): Promise<void> {
    const head = textOf({ ...line, bytes: line.bytes.subarray(0, LOOKED_AT_BYTES) });
    if (head.includes('"record_type"')) await this.deps.onReject(rejectLine(line, reason));
  }

  private passOn(bytes: Uint8Array): void {
    if (!this.options.isTee) this.passing.push(bytes);
  }

  /** Writes together what one piece of the stream brought: line by line it would take ten times as long. */
  private async flush(): Promise<void> {
    const passing = this.passing;
    this.passing = [];
    if (passing.length > 0) await this.deps.passOn(Buffer.concat(passing));
  }
}

/** How much of a line is looked at for the key that records have, in bytes; the engine writes it first. */
const LOOKED_AT_BYTES = 64 * 1024;
