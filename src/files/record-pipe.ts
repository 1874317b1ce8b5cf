import type { Clock } from '../core/clock.js';
import { joined, type Line, linePieces, MAX_LINE_BYTES, textOf, withoutLineBreak } from '../core/lines.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import { offerDelivery } from './patient-consumer.js';
import { readLine, rejectLine } from './read-record.js';
import { batchesOf, joinBatches, type Reject } from './record-source.js';

/** What a pipe works with. */
export interface RecordPipeDeps {
  readonly consumer: RecordConsumer;
  readonly clock: Clock;
  /** Writes to the reader of the pipe; resolves when there is room for more, and when nobody reads any more. */
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

  private async takeObject(line: Line, raw: Uint8Array): Promise<void> {
    const { records, rejects } = readLine(line);
    for (const { reason } of rejects) await this.reject(line, reason);
    if (records.length === 0) this.passOn(raw);
    else if (this.store.hasFailed) {
      // Behind those that waited.
      await this.store.drain();
      this.passOn(raw);
    }
    // Should they not be taken, the line is passed on once.
    else
      for (const [index, record] of records.entries())
        await this.store.add({ record, raw: index === 0 ? raw : NOTHING });
  }

  /** Another program's JSON is no reject. */
  private async reject(line: Line, reason: string): Promise<void> {
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

/** A part of what came through a pipe. */
export type PipePart =
  /** No record: to be passed on as it is, with its line break if it had one; also a piece of a line. */
  | { readonly kind: 'plain'; readonly bytes: Uint8Array }
  /** A whole line that begins as a JSON object does; `raw` is all of it, with its line break. */
  | { readonly kind: 'object'; readonly line: Line; readonly raw: Uint8Array }
  /** The beginning of a line that begins as a JSON object does and is longer than the limit; what follows of it is plain. */
  | { readonly kind: 'tooLong'; readonly line: Line };

const CARRIAGE_RETURN = 0x0d;
const BRACE = 0x7b;
const NOTHING = new Uint8Array(0);
/** Blanks, and what may stand before a line by accident: NULs and a byte order mark. */
const PASSED_OVER: ReadonlySet<number> = new Set([0x20, 0x09, CARRIAGE_RETURN, 0x00, 0xef, 0xbb, 0xbf]);
const isSpace = (byte: number): boolean => PASSED_OVER.has(byte);

/**
 * Tells lines that may be records from all others, in whatever pieces they come. Others are given as soon as their first
 * character is there, so that prompts and progress bars stay alive, and byte for byte; a line that may be a record is
 * held until it is complete, up to a limit.
 */
export class PipeLines {
  private held: Uint8Array[] = [];
  private pendingBytes = 0;
  private isPlain = false;
  private isObject = false;
  private number = 1;
  private offset = 0;

  constructor(private readonly maxLineBytes = MAX_LINE_BYTES) {}

  /** @param bytes are kept, so they must not be written over. */
  *push(bytes: Uint8Array): Generator<PipePart> {
    for (const { piece, isEnd } of linePieces(bytes)) yield* this.take(piece, isEnd);
  }

  /** What is left, when nothing more comes. */
  *end(): Generator<PipePart> {
    if (this.pendingBytes > 0) yield this.release();
  }

  private *take(piece: Uint8Array, isEnd: boolean): Generator<PipePart> {
    if (!this.isPlain && !this.isObject) {
      const first = piece.find((byte) => !isSpace(byte));
      this.isObject = first === BRACE;
      this.isPlain = first !== undefined && !this.isObject;
    }
    this.held.push(piece);
    this.pendingBytes += piece.length;
    if (this.isObject && this.pendingBytes > this.maxLineBytes) {
      yield { kind: 'tooLong', line: this.lineOf(joined(this.held)) };
      this.isObject = false;
      this.isPlain = true;
    }
    if (isEnd || this.isPlain || this.pendingBytes > this.maxLineBytes) yield this.release();
    if (!isEnd) return;
    this.isPlain = false;
    this.isObject = false;
    this.number += 1;
  }

  private release(): PipePart {
    const raw = joined(this.held);
    const part: PipePart = this.isObject
      ? { kind: 'object', line: this.lineOf(raw), raw }
      : { kind: 'plain', bytes: raw };
    this.offset += raw.length;
    this.held = [];
    this.pendingBytes = 0;
    return part;
  }

  private lineOf(raw: Uint8Array): Line {
    const { number, offset } = this;
    return { number, offset, endOffset: offset + raw.length, bytes: withoutLineBreak(raw) };
  }
}

/** A record that came through a pipe, with the bytes of its line. */
export interface PipedRecord {
  readonly record: TelemetryRecord;
  readonly raw: Uint8Array;
}

/** What waits for a slow store, as bytes of lines; beyond it the pipe waits, too: 8 MiB. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** How long a store that takes nothing is tried again, in milliseconds. */
const GIVE_UP_MS = 30_000;
const never = new AbortController().signal;

/**
 * Hands records to a consumer beside the pipe that they came through, which goes on meanwhile. When the consumer fails for
 * good, that is reported once, with the lines that it did not get, and no more records are taken.
 */
export class PipeStore {
  readonly traceIds = new Set<TraceId>();
  recordCount = 0;
  private waiting: PipedRecord[] = [];
  private waitingBytes = 0;
  private working: Promise<void> | undefined;
  private failed = false;

  /** @param onFailed gets the lines that were not taken. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly onFailed: (error: unknown, lines: readonly Uint8Array[]) => Promise<void>,
  ) {}

  /** Whether it takes nothing any more. */
  get hasFailed(): boolean {
    return this.failed;
  }

  /** Takes a record; resolves when there is room for the next. */
  async add(piped: PipedRecord): Promise<void> {
    this.waiting.push(piped);
    this.waitingBytes += piped.raw.length;
    this.working ??= this.work();
    if (this.waitingBytes > MAX_WAITING_BYTES) await this.working;
  }

  /** Resolves when everything was handed over, or given up. */
  async drain(): Promise<void> {
    await this.working;
  }

  private async work(): Promise<void> {
    // What comes in this turn goes with it.
    await Promise.resolve();
    while (this.waiting.length > 0 && !this.failed) {
      const taken = this.waiting;
      this.waiting = [];
      this.waitingBytes = 0;
      try {
        await this.hand(taken);
      } catch (error) {
        this.failed = true;
        await this.onFailed(
          error,
          [...taken, ...this.waiting].map(({ raw }) => raw),
        );
        this.waiting = [];
      }
    }
    this.working = undefined;
  }

  private async hand(taken: readonly PipedRecord[]): Promise<void> {
    const delivery = joinBatches({ batches: batchesOf(taken.map(({ record }) => record)), foreign: [] });
    await offerDelivery(this.consumer, delivery, { clock: this.clock, signal: never, maxElapsedMs: GIVE_UP_MS });
    for (const { traceId } of delivery.batches) this.traceIds.add(traceId);
    this.recordCount += taken.length;
  }
}
