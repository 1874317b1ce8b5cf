import { type ByteLine, MAX_LINE_BYTES } from './line-splitter.js';

/** A stretch of what came through a pipe. */
export type PipePart =
  /** No record: to be passed on as it is, with its line break if it had one; also a piece of a line. */
  | { readonly kind: 'plain'; readonly bytes: Uint8Array }
  /** A whole line that begins as a JSON object does; `raw` is all of it, with its line break. */
  | { readonly kind: 'object'; readonly line: ByteLine; readonly raw: Uint8Array }
  /** The beginning of a line that begins as a JSON object does and is longer than the limit; what follows of it is plain. */
  | { readonly kind: 'tooLong'; readonly line: ByteLine };

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BRACE = 0x7b;
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === CARRIAGE_RETURN;

/**
 * Tells lines that may be records from all others, in whatever pieces they come. Others are given as soon as their first
 * character is there, so that prompts and progress bars stay alive, and byte for byte; a line that may be a record is
 * held until it is complete, up to a limit.
 */
export class PipeLines {
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  private isPlain = false;
  private isObject = false;
  private number = 1;
  private offset = 0;

  constructor(private readonly maxLineBytes = MAX_LINE_BYTES) {}

  /** @param bytes are kept, so they must not be written over. */
  *push(bytes: Uint8Array): Generator<PipePart> {
    let start = 0;
    while (start < bytes.length) {
      const lineFeed = bytes.indexOf(LINE_FEED, start);
      const end = lineFeed === -1 ? bytes.length : lineFeed + 1;
      yield* this.take(bytes.subarray(start, end), lineFeed !== -1);
      start = end;
    }
  }

  /** What is left, when nothing more comes. */
  *end(): Generator<PipePart> {
    if (this.heldBytes > 0) yield this.release();
  }

  private *take(piece: Uint8Array, isEnd: boolean): Generator<PipePart> {
    if (!this.isPlain && !this.isObject) {
      const first = piece.find((byte) => !isSpace(byte));
      this.isObject = first === BRACE;
      this.isPlain = first !== undefined && !this.isObject;
    }
    this.held.push(piece);
    this.heldBytes += piece.length;
    if (this.isObject && this.heldBytes > this.maxLineBytes) {
      yield { kind: 'tooLong', line: this.lineOf(this.whole()) };
      this.isObject = false;
      this.isPlain = true;
    }
    if (isEnd || this.isPlain || this.heldBytes > this.maxLineBytes) yield this.release();
    if (!isEnd) return;
    this.isPlain = false;
    this.isObject = false;
    this.number += 1;
  }

  private release(): PipePart {
    const raw = this.whole();
    const part: PipePart = this.isObject
      ? { kind: 'object', line: this.lineOf(raw), raw }
      : { kind: 'plain', bytes: raw };
    this.offset += raw.length;
    this.held = [];
    this.heldBytes = 0;
    return part;
  }

  private lineOf(raw: Uint8Array): ByteLine {
    let end = raw.length;
    if (raw[end - 1] === LINE_FEED) end -= 1;
    if (raw[end - 1] === CARRIAGE_RETURN) end -= 1;
    return { number: this.number, offset: this.offset, bytes: raw.subarray(0, end) };
  }

  private whole(): Uint8Array {
    const [first] = this.held;
    return this.held.length === 1 && first !== undefined ? first : Buffer.concat(this.held);
  }
}
