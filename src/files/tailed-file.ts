import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { LineSplitter, openIfThere, type SplitLines } from '../core/lines.js';
import { rejectLine } from './read-record.js';
import type { Reject } from './record-source.js';
import { HEAD_BYTES, hashOfHead, type TailPosition } from './tail-position.js';

/** The result of one read of a tailed file. */
export interface TailedLines extends SplitLines {
  /** Lines that were lost because the file was truncated. */
  readonly rejects: readonly Reject[];
  /** How far it was read. */
  readonly position: TailPosition;
}

/** Bytes read at a time: 1 MiB. */
const READ_BYTES = 1024 * 1024;
/** The size of a pipe's buffer, in bytes. */
const PIPE_BYTES = 64 * 1024;
const EMPTY = new Uint8Array(0);

/**
 * An open file or named pipe that another program is writing. It is read on from the last offset even if it was renamed. A file that became shorter, or begins with other bytes than before, is read
 * from its beginning.
 */
export class TailedFile {
  /**
   * Opens a file.
   * @param from the position to continue at, if it belongs to this file; otherwise reading starts at the beginning
   * @returns `undefined` if there is no file of that name
   * @throws errors of the file system if it cannot be opened
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
  /** Length of the file at the last read, in bytes. */
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

  /** Whether the last read did not reach the end that the file had then; unknown (true) for a pipe. */
  get mayHaveMore(): boolean {
    return this.isPipe || this.readOffset < this.seenBytes;
  }

  /** Identifies the file, to compare it with the file that has its name now. */
  get identity(): string {
    return `${this.kind.device}:${this.kind.inode}`;
  }

  get position(): TailPosition {
    const offset = this.splitter.lineOffset;
    const head = this.head.subarray(0, offset);
    const { inode } = this.kind;
    return { inode, offset, line: this.splitter.lineNumber, headBytes: head.length, headHash: hashOfHead(head) };
  }

  /** Returns the next lines, from at most 1 MiB; `undefined` if there is nothing more for now. */
  async read(): Promise<TailedLines | undefined> {
    if (this.kind.isPipe) return this.take(await this.readPipe(), []);
    const { size, mtimeMs } = await this.handle.stat();
    const isTouched = mtimeMs !== this.modifiedMs;
    this.modifiedMs = mtimeMs;
    this.seenBytes = size;
    // A file that was rewritten with the same length begins with other bytes.
    if (size === this.readOffset && (size === 0 || !isTouched || (await this.hasSameHead()))) return undefined;
    const bytes = size > this.readOffset ? await this.readFrom(this.readOffset, size) : EMPTY;
    // Checked after reading, so that the bytes that were read belong to the same file as its beginning.
    if (bytes.length > 0 && (await this.hasSameHead())) return this.take(bytes, []);
    const rejects = this.beginAnew();
    return this.take(await this.readFrom(0, size), rejects);
  }

  /** Completes the last line without a line break, when nothing more will be written. */
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
    // Keeps the whole head, even if the position covers only a part of it, so that it is not extended by what comes
    // next.
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

  /** Starts again at the beginning of a file that was truncated or rewritten. */
  private beginAnew(): readonly Reject[] {
    const { lineNumber: number, lineOffset: offset, restBytes } = this.splitter;
    const reason = `the file was cut off before the line was complete, after ${restBytes} bytes of it`;
    this.splitter = new LineSplitter({ maxLineBytes: this.maxLineBytes });
    this.head = EMPTY;
    this.readOffset = 0;
    return restBytes === 0 ? [] : [rejectLine({ number, offset, bytes: EMPTY }, reason)];
  }

  /** Reads at most 1 MiB of the bytes between two offsets. */
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
 * Opens a file for reading. A pipe is opened for writing as well, so that it does not end between two writers. Opening and reading it never blocks, which would occupy one of the few threads that
 * Node has.
 */
async function openToRead(path: string): Promise<FileHandle | undefined> {
  const file = await openIfThere(path, constants.O_NONBLOCK);
  if (file === undefined || !(await closeOnFailure(file, () => file.stat())).isFIFO()) return file;
  const both = await open(path, constants.O_RDWR | constants.O_NONBLOCK).catch(() => undefined);
  if (both === undefined) return file;
  await file.close();
  return both;
}
