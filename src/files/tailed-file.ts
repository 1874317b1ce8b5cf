import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { LineSplitter, openIfThere, type SplitLines } from '../core/lines.js';
import { rejectLine } from './read-record.js';
import type { Reject } from './record-source.js';
import { HEAD_BYTES, hashOfHead, type TailPosition } from './tail-position.js';

/** What one read of a tailed file brought. */
export interface TailedLines extends SplitLines {
  /** What was lost because the file was cut off. */
  readonly rejects: readonly Reject[];
  /** How far it was read. */
  readonly position: TailPosition;
}

/** Bytes read at a time: 1 MiB. */
const READ_BYTES = 1024 * 1024;
/** A pipe holds no more by itself, in bytes. */
const PIPE_BYTES = 64 * 1024;
const EMPTY = new Uint8Array(0);

/**
 * One file, or named pipe, that somebody else is writing, held open: it goes on being read where it was, whatever its
 * name is by now. A file that became shorter, or begins with other bytes than before, is read from its beginning.
 */
export class TailedFile {
  /**
   * @param from where to go on, if this is the file of that position; the beginning otherwise.
   * @returns `undefined` when there is none of that name.
   * @throws what the file system throws when it cannot be opened.
   */
  static async open(path: string, maxLineBytes: number, from?: TailPosition): Promise<TailedFile | undefined> {
    const handle = await openToRead(path);
    if (handle === undefined) return undefined;
    return closeOnFailure(handle, async () => {
      const found = await handle.stat({ bigint: true });
      const kind = { isPipe: found.isFIFO(), device: String(found.dev), inode: String(found.ino) };
      const file = new TailedFile(handle, kind, maxLineBytes);
      if (from !== undefined && !kind.isPipe) await file.resume(from);
      return file;
    });
  }

  private splitter: LineSplitter;
  private head: Uint8Array = EMPTY;
  private readOffset = 0;
  private modifiedMs = -1;
  /** How long it was at the last read, in bytes. */
  private seenBytes = 0;

  private constructor(
    private readonly handle: FileHandle,
    private readonly kind: { readonly isPipe: boolean; readonly device: string; readonly inode: string },
    private readonly maxLineBytes: number,
  ) {
    this.splitter = new LineSplitter({ maxLineBytes });
  }

  get isPipe(): boolean {
    return this.kind.isPipe;
  }

  /** Whether the last read stopped before all was read that was there then; of a pipe nobody knows. */
  get mayHaveMore(): boolean {
    return this.isPipe || this.readOffset < this.seenBytes;
  }

  /** What tells it from the file that has its name by now. */
  get identity(): string {
    return `${this.kind.device}:${this.kind.inode}`;
  }

  get position(): TailPosition {
    const offset = this.splitter.lineOffset;
    const head = this.head.subarray(0, offset);
    const { inode } = this.kind;
    return { inode, offset, line: this.splitter.lineNumber, headBytes: head.length, headHash: hashOfHead(head) };
  }

  /** The next lines, of at most 1 MiB read at once; `undefined` when there is nothing more just now. */
  async read(): Promise<TailedLines | undefined> {
    if (this.kind.isPipe) return this.take(await this.readPipe(), []);
    const { size, mtimeMs } = await this.handle.stat();
    const isTouched = mtimeMs !== this.modifiedMs;
    this.modifiedMs = mtimeMs;
    this.seenBytes = size;
    // Written anew to the same length, it begins with other bytes.
    if (size === this.readOffset && (size === 0 || !isTouched || (await this.hasSameHead()))) return undefined;
    const bytes = size > this.readOffset ? await this.readFrom(this.readOffset, size) : EMPTY;
    // Looked at after reading: what was read is of the same file as the beginning, then.
    if (bytes.length > 0 && (await this.hasSameHead())) return this.take(bytes, []);
    const rejects = this.beginAnew();
    return this.take(await this.readFrom(0, size), rejects);
  }

  /** What is left is a line, though it has no line break: nobody writes any more. */
  end(): TailedLines | undefined {
    if (this.splitter.restBytes === 0) return undefined;
    this.splitter.end();
    return { ...this.splitter.take(), rejects: [], position: this.position };
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  private async resume({ inode, offset, line, headBytes, headHash }: TailPosition): Promise<void> {
    const { size } = await this.handle.stat();
    if (inode !== this.kind.inode || size < offset) return;
    // What comes next is no part of the beginning, however little of that the position covers.
    const head = await this.readFrom(0, Math.min(HEAD_BYTES, offset));
    if (hashOfHead(head.subarray(0, headBytes)) !== headHash) return;
    this.head = head;
    this.readOffset = offset;
    this.splitter = new LineSplitter({ maxLineBytes: this.maxLineBytes, offset, number: line });
  }

  private take(bytes: Uint8Array, rejects: readonly Reject[]): TailedLines | undefined {
    if (bytes.length === 0 && rejects.length === 0) return undefined;
    if (this.head.length < HEAD_BYTES && !this.kind.isPipe) {
      this.head = Buffer.concat([this.head, bytes.subarray(0, HEAD_BYTES - this.head.length)]);
    }
    this.readOffset += bytes.length;
    this.splitter.push(bytes);
    return { ...this.splitter.take(), rejects, position: this.position };
  }

  private async hasSameHead(): Promise<boolean> {
    return Buffer.compare(await this.readFrom(0, this.head.length), this.head) === 0;
  }

  /** The file was cut off, or written from its beginning. */
  private beginAnew(): readonly Reject[] {
    const { lineNumber: number, lineOffset: offset, restBytes } = this.splitter;
    const reason = `the file was cut off before the line was complete, after ${restBytes} bytes of it`;
    this.splitter = new LineSplitter({ maxLineBytes: this.maxLineBytes });
    this.head = EMPTY;
    this.readOffset = 0;
    return restBytes === 0 ? [] : [rejectLine({ number, offset, bytes: EMPTY }, reason)];
  }

  /** At most 1 MiB of what lies between two places. */
  private async readFrom(start: number, end: number): Promise<Uint8Array> {
    const length = Math.min(READ_BYTES, end - start);
    if (length === 0) return EMPTY;
    const { buffer, bytesRead } = await this.handle.read(Buffer.allocUnsafe(length), 0, length, start);
    return buffer.subarray(0, bytesRead);
  }

  private async readPipe(): Promise<Uint8Array> {
    try {
      const { buffer, bytesRead } = await this.handle.read(Buffer.allocUnsafe(PIPE_BYTES), 0, PIPE_BYTES, null);
      return buffer.subarray(0, bytesRead);
    } catch (error) {
      if (errorCode(error) === 'EAGAIN') return EMPTY;
      throw error;
    }
  }
}

/**
 * A pipe is opened for writing as well: it does not end then when one writer is done and the next has not begun. Opening
 * and reading it never blocks, which would take a thread of the few that Node has.
 */
async function openToRead(path: string): Promise<FileHandle | undefined> {
  const file = await openIfThere(path, constants.O_NONBLOCK);
  if (file === undefined || !(await closeOnFailure(file, () => file.stat())).isFIFO()) return file;
  const both = await open(path, constants.O_RDWR | constants.O_NONBLOCK).catch(() => undefined);
  if (both === undefined) return file;
  await file.close();
  return both;
}
