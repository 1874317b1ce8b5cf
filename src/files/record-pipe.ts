import type { Clock } from '../core/clock.js';
import { joined, type Line, linePieces, MAX_LINE_BYTES, textOf, withoutLineBreak } from '../core/lines.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import { readLine, rejectLine } from './read-record.js';
import { batchesOf, joinBatches, type Reject } from './record-source.js';
import { offerDelivery } from './retrying-consumer.js';

/** Dependencies of a pipe. */
export interface RecordPipeDeps {
  readonly consumer: RecordConsumer;
  readonly clock: Clock;
  /** Writes to the reader of the pipe; resolves when there is room for more, or nobody reads any more. */
  passOn(bytes: Uint8Array): Promise<void>;
  /** Called for a line that looks like a record but is none; it is passed on. */
  onReject(reject: Reject): Promise<void>;
  /** Called when records cannot be stored; from then on they are passed on. */
  onFailed(error: unknown): void;
}

/** Options of a pipe. */
export interface RecordPipeOptions {
  /** Whether everything is passed on, not only what is no record. */
  readonly isTee: boolean;
  /** The longest line that may be a record, in bytes. Default 64 MiB. */
  readonly maxLineBytes?: number;
}

/**
 * Takes the records out of a stream of lines and passes everything else on, byte for byte and in order. Also passes on lines that only look like records, and all records after the consumer has
 * failed. Waits for a slow consumer when 8 MiB of lines are waiting for it.
 */
export class RecordPipe {
  readonly store: PipeStore;
  private readonly lines: PipeLines;
  /** What to pass on of the current piece of the stream. */
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

  /** Reads the stream to its end; resolves when all records were delivered. */
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
      // Lines that still wait come first.
      await this.store.drain();
      this.passOn(raw);
    }
    // If the records cannot be delivered, the line is passed on once.
    else
      for (const [index, record] of records.entries())
        await this.store.add({ record, raw: index === 0 ? raw : NOTHING });
  }

  /** Reports a reject, unless the line is another program's JSON. */
  private async reject(line: Line, reason: string): Promise<void> {
    const head = textOf({ ...line, bytes: line.bytes.subarray(0, LOOKED_AT_BYTES) });
    if (head.includes('"record_type"')) await this.deps.onReject(rejectLine(line, reason));
  }

  private passOn(bytes: Uint8Array): void {
    if (!this.options.isTee) this.passing.push(bytes);
  }

  /** Writes everything of a piece of the stream together: line by line takes ten times as long. */
  private async flush(): Promise<void> {
    const passing = this.passing;
    this.passing = [];
    if (passing.length > 0) await this.deps.passOn(Buffer.concat(passing));
  }
}

/** How many bytes of a line are searched for the key that records have; the engine writes it first. */
const LOOKED_AT_BYTES = 64 * 1024;

/** A part of the stream. */
export type PipePart =
  /** Not a record, to be passed on unchanged: a line with its line break if it had one, or a piece of a line. */
  | { readonly kind: 'plain'; readonly bytes: Uint8Array }
  /** A complete line that begins like a JSON object; `raw` includes its line break. */
  | { readonly kind: 'object'; readonly line: Line; readonly raw: Uint8Array }
  /** The beginning of a line that begins like a JSON object and is longer than the limit; the rest of the line is plain. */
  | { readonly kind: 'tooLong'; readonly line: Line };

const CARRIAGE_RETURN = 0x0d;
const BRACE = 0x7b;
const NOTHING = new Uint8Array(0);
/** White space, and bytes that may precede a line by accident: NULs and a byte order mark. */
const PASSED_OVER: ReadonlySet<number> = new Set([0x20, 0x09, CARRIAGE_RETURN, 0x00, 0xef, 0xbb, 0xbf]);
const isSpace = (byte: number): boolean => PASSED_OVER.has(byte);

/**
 * Separates lines that may be records from all others, in whatever pieces they arrive. Other lines are returned as soon as their first character has arrived, byte for byte, so that prompts and
 * progress bars keep working; a line that may be a record is buffered until it is complete, up to a limit.
 */
export class PipeLines {
  private buffered: Uint8Array[] = [];
  private pendingBytes = 0;
  private isPlain = false;
  private isObject = false;
  private number = 1;
  private offset = 0;

  constructor(private readonly maxLineBytes = MAX_LINE_BYTES) {}

  /** Adds bytes. @param bytes are kept by reference, so they must not be overwritten */
  *push(bytes: Uint8Array): Generator<PipePart> {
    for (const { piece, isEnd } of linePieces(bytes)) yield* this.take(piece, isEnd);
  }

  /** Returns the rest at the end of the stream. */
  *end(): Generator<PipePart> {
    if (this.pendingBytes > 0) yield this.release();
  }

  private *take(piece: Uint8Array, isEnd: boolean): Generator<PipePart> {
    if (!this.isPlain && !this.isObject) {
      const first = piece.find((byte) => !isSpace(byte));
      this.isObject = first === BRACE;
      this.isPlain = first !== undefined && !this.isObject;
    }
    this.buffered.push(piece);
    this.pendingBytes += piece.length;
    if (this.isObject && this.pendingBytes > this.maxLineBytes) {
      yield { kind: 'tooLong', line: this.lineOf(joined(this.buffered)) };
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
    const raw = joined(this.buffered);
    const part: PipePart = this.isObject
      ? { kind: 'object', line: this.lineOf(raw), raw }
      : { kind: 'plain', bytes: raw };
    this.offset += raw.length;
    this.buffered = [];
    this.pendingBytes = 0;
    return part;
  }

  private lineOf(raw: Uint8Array): Line {
    const { number, offset } = this;
    return { number, offset, endOffset: offset + raw.length, bytes: withoutLineBreak(raw) };
  }
}

/** A record from a pipe, with the bytes of its line. */
export interface PipedRecord {
  readonly record: TelemetryRecord;
  readonly raw: Uint8Array;
}

/** The most bytes of lines that may wait for a slow consumer, 8 MiB; beyond it the pipe waits, too. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** How long a failing consumer is tried again, in milliseconds. */
const GIVE_UP_MS = 30_000;
const never = new AbortController().signal;

/**
 * Delivers records to a consumer in the background, while the pipe continues. If the consumer fails for good, `onFailed` is called once with the lines that were not delivered, and no more records
 * are accepted.
 */
export class PipeStore {
  readonly traceIds = new Set<TraceId>();
  recordCount = 0;
  private waiting: PipedRecord[] = [];
  private waitingBytes = 0;
  private working: Promise<void> | undefined;
  private failed = false;

  /** @param onFailed gets the lines that were not delivered */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly clock: Clock,
    private readonly onFailed: (error: unknown, lines: readonly Uint8Array[]) => Promise<void>,
  ) {}

  /** Whether the consumer has failed for good. */
  get hasFailed(): boolean {
    return this.failed;
  }

  /** Adds a record; resolves when there is room for the next. */
  async add(piped: PipedRecord): Promise<void> {
    this.waiting.push(piped);
    this.waitingBytes += piped.raw.length;
    this.working ??= this.work();
    if (this.waitingBytes > MAX_WAITING_BYTES) await this.working;
  }

  /** Resolves when everything was delivered, or the consumer has failed. */
  async drain(): Promise<void> {
    await this.working;
  }

  private async work(): Promise<void> {
    // Records that are added synchronously are delivered together.
    await Promise.resolve();
    while (this.waiting.length > 0 && !this.failed) {
      const taken = this.waiting;
      this.waiting = [];
      this.waitingBytes = 0;
      try {
        await this.deliver(taken);
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

  private async deliver(taken: readonly PipedRecord[]): Promise<void> {
    const delivery = joinBatches({ batches: batchesOf(taken.map(({ record }) => record)), passthrough: [] });
    await offerDelivery(this.consumer, delivery, { clock: this.clock, signal: never, maxElapsedMs: GIVE_UP_MS });
    for (const { traceId } of delivery.batches) this.traceIds.add(traceId);
    this.recordCount += taken.length;
  }
}
