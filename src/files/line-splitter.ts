/** A line as it stands in a file, without its line break. */
export interface ByteLine {
  /** Counts from 1. */
  readonly number: number;
  /** Where it begins, in bytes from the file's beginning. */
  readonly offset: number;
  /** Its bytes; a view of what was read, so they stay as long as they are held. */
  readonly bytes: Uint8Array;
}

/** A line of which only the place is known: it was longer than the limit. */
export type LongLine = Omit<ByteLine, 'bytes'> & {
  /** The first bytes of it. */
  readonly head: Uint8Array;
};

/** Lines that were taken together. */
export interface SplitLines {
  /** Lines with something on them. */
  readonly lines: readonly ByteLine[];
  /** Lines that were longer than the limit and were passed over. */
  readonly tooLong: readonly LongLine[];
}

/** The longest line that is read, in bytes: 64 MiB, ten times the largest that an engine is known to write. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** What is kept of a line that is too long, in bytes. */
const HEAD_BYTES = 4096;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Bytes that make no line by themselves: tab, LF, VT, FF, CR and space. */
const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= CARRIAGE_RETURN);

/**
 * Cuts bytes into lines. Lines end in LF or CRLF; blank ones are passed over. Holds the line that is not complete yet, at
 * most `maxLineBytes` of it; of a longer one only its length and its first 4 KiB.
 */
export class LineSplitter {
  private lines: ByteLine[] = [];
  private tooLong: LongLine[] = [];
  private pieces: Uint8Array[] = [];
  private pieceBytes = 0;

  /**
   * @param offset of the first byte that will be pushed, where it is not the file's first.
   * @param number of the line that begins there.
   */
  constructor(
    private readonly maxLineBytes = MAX_LINE_BYTES,
    private offset = 0,
    private number = 1,
  ) {}

  /** Where the line begins that is not complete yet. */
  get lineOffset(): number {
    return this.offset;
  }

  get lineNumber(): number {
    return this.number;
  }

  /** Length so far of the line that is not complete yet, in bytes. */
  get restBytes(): number {
    return this.pieceBytes;
  }

  /** @param bytes are kept, so they must not be written over. */
  push(bytes: Uint8Array): void {
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      this.addPiece(bytes.subarray(start, end));
      this.endLine(1);
      start = end + 1;
    }
    this.addPiece(bytes.subarray(start));
  }

  /** What is left is a line, though it has no line break. */
  end(): void {
    if (this.pieceBytes > 0) this.endLine(0);
  }

  /** The lines that were completed since the last call. */
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
    // From now on only its length counts.
    if (this.pieceBytes > this.maxLineBytes) this.pieces = [new Uint8Array(this.whole().subarray(0, HEAD_BYTES))];
  }

  private endLine(breakBytes: number): void {
    const place = { number: this.number++, offset: this.offset };
    const bytes = withoutCarriageReturn(this.whole());
    if (this.pieceBytes > this.maxLineBytes) this.tooLong.push({ ...place, head: bytes });
    else if (!bytes.every(isBlank)) this.lines.push({ ...place, bytes });
    this.offset += this.pieceBytes + breakBytes;
    this.pieces = [];
    this.pieceBytes = 0;
  }

  private whole(): Uint8Array {
    const [first] = this.pieces;
    if (first === undefined) return EMPTY;
    return this.pieces.length === 1 ? first : Buffer.concat(this.pieces);
  }
}

const EMPTY = new Uint8Array(0);

function withoutCarriageReturn(bytes: Uint8Array): Uint8Array {
  return bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
}
