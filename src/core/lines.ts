import { constants as bufferConstants } from 'node:buffer';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type ByteSource, GrowingBytes } from './bytes.js';
import { errorCode } from './errors.js';

/** A line of a file or stream, without its line break. */
export interface Line {
  /** Counts from 1. */
  readonly number: number;
  /** Offset of its first byte. */
  readonly offset: number;
  /** Offset of the byte after its line break. */
  readonly endOffset: number;
  /** A view of the bytes that were read. */
  readonly bytes: Uint8Array;
}

/** A line that is longer than the limit. */
export type LongLine = Omit<Line, 'bytes'> & {
  /** Its first bytes. */
  readonly head: Uint8Array;
};

/** Lines that were completed since the last call of `take`. */
export interface SplitLines {
  readonly lines: readonly Line[];
  /** Lines that were longer than the limit. */
  readonly tooLong: readonly LongLine[];
}

/** The longest line of other programs that is read: 64 MiB, ten times the largest line that an engine is known to write. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** The longest line that can be converted to a string, in bytes; about 512 MiB. */
export const MAX_TEXT_BYTES = bufferConstants.MAX_STRING_LENGTH;

/** The part of a too long line that is kept. */
const HEAD_BYTES = 4096;
/** Bytes that are read at a time. */
const READ_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const EMPTY = new Uint8Array(0);
/** Whether a byte is white space: tab, LF, VT, FF, CR or space. Lines of such bytes are blank. */
const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= CARRIAGE_RETURN);

/** Returns the length of the complete lines at the start of `bytes`. */
export function wholeLineBytes(bytes: Uint8Array): number {
  return bytes.lastIndexOf(LINE_FEED) + 1;
}

/** How many bytes at the end of a file are read at a time to find its last line break. */
const TAIL_BYTES = 4096;

/**
 * Returns the length of a file up to its last line break, in bytes. Bytes behind it were cut off in the middle of a write.
 * @param size of the file, in bytes
 */
export async function wholeLinesLength(handle: FileHandle, size: number): Promise<number> {
  const tail = Buffer.allocUnsafe(Math.min(TAIL_BYTES, size));
  for (let end = size; end > 0; end = Math.max(0, end - TAIL_BYTES)) {
    const start = Math.max(0, end - TAIL_BYTES);
    const { bytesRead } = await handle.read(tail, 0, end - start, start);
    const wholeBytes = wholeLineBytes(tail.subarray(0, bytesRead));
    if (wholeBytes > 0) return start + wholeBytes;
  }
  return 0;
}

/** Cuts bytes after each line feed. */
export function* linePieces(bytes: Uint8Array): Generator<{ readonly piece: Uint8Array; readonly isEnd: boolean }> {
  for (let start = 0; start < bytes.length; ) {
    const lineFeed = bytes.indexOf(LINE_FEED, start);
    const end = lineFeed === -1 ? bytes.length : lineFeed + 1;
    yield { piece: bytes.subarray(start, end), isEnd: lineFeed !== -1 };
    start = end;
  }
}

/** Returns a line without the LF or CRLF at its end. */
export function withoutLineBreak(line: Uint8Array): Uint8Array {
  const end = line.at(-1) === LINE_FEED ? line.length - 1 : line.length;
  return line.subarray(0, line[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
}

/** Concatenates pieces; a single piece is not copied. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = EMPTY] = pieces;
  return pieces.length <= 1 ? first : Buffer.concat(pieces);
}

export function textOf({ bytes }: Pick<Line, 'bytes'>): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return buffer.toString('utf8');
}

/** How bytes are cut into lines. */
export interface LineSplitterOptions {
  /** Default 64 MiB. */
  readonly maxLineBytes?: number | undefined;
  /** Offset of the first byte that will be pushed. Default 0. */
  readonly offset?: number;
  /** Number of the first line. Default 1. */
  readonly number?: number;
  /** Whether blank lines are returned, too. Default: they are skipped. */
  readonly keepsBlankLines?: boolean;
}

/** Cuts bytes into lines, which end in LF or CRLF. Buffers the incomplete line up to `maxLineBytes`; of a longer line it keeps the length and the first 4 KiB. */
export class LineSplitter {
  private lines: Line[] = [];
  private tooLong: LongLine[] = [];
  private pieces: Uint8Array[] = [];
  private pieceBytes = 0;
  private offset: number;
  private number: number;
  private readonly maxLineBytes: number;
  private readonly keepsBlankLines: boolean;

  constructor(options: LineSplitterOptions = {}) {
    this.maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
    this.offset = options.offset ?? 0;
    this.number = options.number ?? 1;
    this.keepsBlankLines = options.keepsBlankLines ?? false;
  }

  /** Offset of the incomplete line. */
  get lineOffset(): number {
    return this.offset;
  }

  get lineNumber(): number {
    return this.number;
  }

  /** Length of the incomplete line so far, in bytes. */
  get restBytes(): number {
    return this.pieceBytes;
  }

  /** Adds bytes. @param bytes are kept by reference, so they must not be overwritten */
  push(bytes: Uint8Array): void {
    for (const { piece, isEnd } of linePieces(bytes)) {
      this.addPiece(isEnd ? piece.subarray(0, -1) : piece);
      if (isEnd) this.endLine(1);
    }
  }

  /** Completes the last line without a line break. */
  end(): void {
    if (this.pieceBytes > 0) this.endLine(0);
  }

  /** Returns the lines that were completed since the last call. */
  take(): SplitLines {
    const taken = { lines: this.lines, tooLong: this.tooLong };
    this.lines = [];
    this.tooLong = [];
    return taken;
  }

  private addPiece(piece: Uint8Array): void {
    if (piece.length === 0) return;
    const wasTooLong = this.pieceBytes > this.maxLineBytes;
    this.pieceBytes += piece.length;
    if (wasTooLong) return;
    this.pieces.push(piece);
    // From now on only the line's length is counted.
    if (this.pieceBytes > this.maxLineBytes) {
      this.pieces = [new Uint8Array(joined(this.pieces).subarray(0, HEAD_BYTES))];
    }
  }

  private endLine(breakBytes: number): void {
    const endOffset = this.offset + this.pieceBytes + breakBytes;
    const position = { number: this.number++, offset: this.offset, endOffset };
    const bytes = withoutLineBreak(joined(this.pieces));
    if (this.pieceBytes > this.maxLineBytes) this.tooLong.push({ ...position, head: bytes });
    else if (this.keepsBlankLines || !bytes.every(isBlank)) this.lines.push({ ...position, bytes });
    this.offset = endOffset;
    this.pieces = [];
    this.pieceBytes = 0;
  }
}

/** A part of a file of lines. */
export interface LineRange {
  /** Default: the file's beginning. */
  readonly fromOffset?: number | undefined;
  /** Default: the file's end. */
  readonly toOffset?: number | undefined;
}

/** Yields the complete lines of a file that this program wrote, blank ones too, in chunks of about 1 MiB. A last line without a line break is left out. A missing file has no lines. */
export async function* readLines(
  path: string,
  { fromOffset = 0, toOffset = Number.POSITIVE_INFINITY }: LineRange = {},
): AsyncGenerator<SplitLines> {
  const handle = await openIfThere(path);
  if (handle === undefined) return;
  try {
    const splitter = new LineSplitter({ maxLineBytes: MAX_TEXT_BYTES, offset: fromOffset, keepsBlankLines: true });
    for (let position = fromOffset; position < toOffset; ) {
      const wanted = Math.min(READ_BYTES, toOffset - position);
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      splitter.push(buffer.subarray(0, bytesRead));
      const taken = splitter.take();
      if (taken.lines.length > 0 || taken.tooLong.length > 0) yield taken;
    }
  } finally {
    await handle.close();
  }
}

/**
 * Yields the lines of a stream as they arrive, without blank ones; the last one needs no line break.
 * @throws RangeError for a line that is too long for a string
 */
export async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const splitter = new LineSplitter({ maxLineBytes: MAX_TEXT_BYTES });
  for await (const bytes of stream) {
    splitter.push(bytes);
    yield* taken(splitter);
  }
  splitter.end();
  yield* taken(splitter);
}

function taken(splitter: LineSplitter): readonly Line[] {
  const { lines, tooLong } = splitter.take();
  if (tooLong.length > 0) throw new RangeError(`a line is longer than ${MAX_TEXT_BYTES} bytes`);
  return lines;
}

/** Opens a file for reading; `undefined` if it does not exist. @param flags in addition to O_RDONLY */
export async function openIfThere(path: string, flags = 0): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | flags);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Reads a file line by line through one reused buffer, for readers that must not create an object per line. The buffer grows with a line that is longer, up to the limit; of a longer line only the
 * end is searched.
 */
export class LineWindow {
  private memory = new GrowingBytes(0);
  lineStart = 0;
  lineEnd = 0;
  /** Offset of the current line in the file. */
  lineOffset = 0;
  /** Whether the current line is longer than the limit; its bytes are not in the buffer. */
  isTooLong = false;
  private next = 0;
  private searched = 0;
  private nextOffset = 0;
  /** Offset of the buffer's first byte in the file. */
  private bufferOffset = 0;
  private isSkipping = false;

  /** @param maxLineBytes limit for lines of other programs; lines that this program wrote have none */
  constructor(private readonly maxLineBytes = Number.POSITIVE_INFINITY) {}

  /** Discards the buffer and continues at an offset of the file. Frees the memory that a long line took. */
  moveTo(offset: number): void {
    this.lineOffset = this.nextOffset = this.bufferOffset = offset;
    this.lineStart = this.lineEnd = this.next = this.searched = 0;
    this.isSkipping = false;
    this.memory.length = 0;
    if (this.memory.bytes.length > 2 * READ_BYTES) this.memory = new GrowingBytes(0);
  }

  /**
   * Reads up to 1 MiB more of the file.
   * @param readInto reads into the given buffer and returns the number of bytes read
   * @returns what `readInto` returned
   */
  fill(readInto: (room: Buffer) => number): number {
    const { memory } = this;
    if (memory.length - this.next > this.maxLineBytes) {
      this.isSkipping = true;
      this.next = memory.length;
    }
    memory.bytes.copyWithin(0, this.next, memory.length);
    this.bufferOffset += this.next;
    memory.length -= this.next;
    this.searched = memory.length;
    this.next = 0;
    memory.reserve(READ_BYTES);
    const bytesRead = readInto(memory.bytes.subarray(memory.length, memory.length + READ_BYTES));
    memory.length += bytesRead;
    return bytesRead;
  }

  /** The buffer; the current line is between `lineStart` and `lineEnd`, without its line feed. */
  get source(): ByteSource {
    return this.memory.source;
  }

  /** The end of the buffered bytes in `source`. */
  get end(): number {
    return this.memory.length;
  }

  /** Returns the complete lines in the buffer, from the next one on. */
  wholeLines(): Buffer {
    const { bytes, length } = this.memory;
    return bytes.subarray(this.next, Math.max(this.next, wholeLineBytes(bytes.subarray(0, length))));
  }

  /** Moves to the next line; `false` if more has to be read for it. */
  nextLine(): boolean {
    const { bytes, length } = this.memory;
    const lineFeed = bytes.indexOf(LINE_FEED, this.searched);
    if (lineFeed < 0 || lineFeed >= length) {
      this.searched = length;
      return false;
    }
    this.take(lineFeed, lineFeed + 1);
    return true;
  }

  /** Takes the rest at the end of the file as the last line; `false` if there is none. */
  lastLine(): boolean {
    const { length } = this.memory;
    if (this.next === length && !this.isSkipping) return false;
    this.take(length, length);
    return true;
  }

  private take(end: number, next: number): void {
    this.isTooLong = this.isSkipping || end - this.next > this.maxLineBytes;
    this.isSkipping = false;
    this.lineStart = this.next;
    this.lineEnd = end;
    this.next = next;
    this.searched = next;
    this.lineOffset = this.nextOffset;
    this.nextOffset = this.bufferOffset + next;
  }
}
