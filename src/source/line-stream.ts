import { createReadStream } from 'node:fs';

/** A line of a text file, without its line break. */
export interface TextLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
}

/** Lines that were read together. */
export interface LineChunk {
  /** Lines with something on them. */
  readonly lines: readonly TextLine[];
  /** Numbers of lines that were longer than the limit and were passed over. */
  readonly tooLong: readonly number[];
  /** Bytes read so far. */
  readonly bytesRead: number;
}

/** The longest line that is read, in bytes: 64 MiB, ten times the largest that an engine is known to write. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Bytes asked for at a time. */
const READ_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Reads a file or pipe line by line. Lines end in LF or CRLF; blank ones are passed over; the last one needs no line
 * break. Holds about one read of 1 MiB and the line that is not complete yet, at most `maxLineBytes`.
 */
export async function* readLineChunks(
  path: string,
  signal: AbortSignal,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<LineChunk> {
  const splitter = new LineSplitter(maxLineBytes);
  let bytesRead = 0;
  const stream = createReadStream(path, { highWaterMark: READ_BYTES, signal });
  for await (const bytes of stream as AsyncIterable<Buffer>) {
    bytesRead += bytes.length;
    splitter.push(bytes);
    yield { ...splitter.take(), bytesRead };
  }
  splitter.end();
  yield { ...splitter.take(), bytesRead };
}

class LineSplitter {
  private lines: TextLine[] = [];
  private tooLong: number[] = [];
  private pieces: Buffer[] = [];
  private pieceBytes = 0;
  private lineNumber = 1;

  constructor(private readonly maxLineBytes: number) {}

  push(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      this.addPiece(bytes.subarray(start, end));
      this.endLine();
      start = end + 1;
    }
    this.addPiece(bytes.subarray(start));
  }

  end(): void {
    if (this.pieceBytes > 0) this.endLine();
  }

  take(): { lines: TextLine[]; tooLong: number[] } {
    const taken = { lines: this.lines, tooLong: this.tooLong };
    this.lines = [];
    this.tooLong = [];
    return taken;
  }

  /** Keeps a piece of the line, unless the line is too long already: then only its length counts. */
  private addPiece(piece: Buffer): void {
    this.pieceBytes += piece.length;
    if (this.pieceBytes > this.maxLineBytes) this.pieces = [];
    else if (piece.length > 0) this.pieces.push(piece);
  }

  private endLine(): void {
    const number = this.lineNumber++;
    if (this.pieceBytes > this.maxLineBytes) {
      this.tooLong.push(number);
    } else {
      const [first = Buffer.alloc(0)] = this.pieces;
      const whole = this.pieces.length > 1 ? Buffer.concat(this.pieces) : first;
      const text = withoutCarriageReturn(whole.toString('utf8'));
      if (text.trim() !== '') this.lines.push({ number, text });
    }
    this.pieces = [];
    this.pieceBytes = 0;
  }
}

function withoutCarriageReturn(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}
