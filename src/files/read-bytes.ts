import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { reasonOf } from '../core/errors.js';
import { SourceError } from './record-source.js';

/** A piece of a file, unpacked. */
export interface FilePiece {
  readonly bytes: Uint8Array;
  /** How much of the file was read for it, in bytes, as it lies on the disk. */
  readonly bytesRead: number;
}

/** Bytes asked for at a time, of a file as it is and of a packed one. */
const READ_BYTES = 1024 * 1024;
const PACKED_BYTES = 64 * 1024;
/** Unpacked bytes that gzip gives at a time. */
const GUNZIP_BYTES = 256 * 1024;
/**
 * How much of a zstd file is unpacked at once, in bytes. Four bytes may stand for a block of 128 KiB, so this bounds what is
 * held to 16 MiB beside the window of at most 32 MiB.
 */
const ZSTD_SLICE_BYTES = 512;

/**
 * Reads a file or pipe, unpacking it where its name ends in `.gz` or `.zst`, in pieces of at most 1 MiB.
 * @throws SourceError for one that is damaged or cut off; what the file system throws when it cannot be read.
 */
export async function* readBytes(path: string, signal: AbortSignal): AsyncGenerator<FilePiece> {
  switch (compressionOf(path)) {
    case 'gzip':
      yield* gunzipped(path, signal);
      break;
    case 'zstd':
      yield* unpacked(path, signal);
      break;
    case undefined: {
      let bytesRead = 0;
      for await (const bytes of piecesOf(path, signal, READ_BYTES)) {
        bytesRead += bytes.length;
        yield { bytes, bytesRead };
      }
    }
  }
}

async function* gunzipped(path: string, signal: AbortSignal): AsyncGenerator<FilePiece> {
  const file = createReadStream(path, { highWaterMark: PACKED_BYTES, signal });
  const gunzip = createGunzip({ chunkSize: GUNZIP_BYTES });
  let failure: unknown;
  file.on('error', (error) => {
    failure = error;
    gunzip.destroy(error);
  });
  file.pipe(gunzip);
  try {
    for await (const bytes of gunzip as AsyncIterable<Buffer>) yield { bytes, bytesRead: file.bytesRead };
  } catch (cause) {
    throw failure === undefined ? damaged(path, 'gzip', cause) : cause;
  } finally {
    file.destroy();
  }
}

async function* unpacked(path: string, signal: AbortSignal): AsyncGenerator<FilePiece> {
  let blocks: Uint8Array[] = [];
  const frames = new ZstdFrames();
  const zstd = new Decompress((block) => {
    if (block.length > 0) blocks.push(block);
  });
  let bytesRead = 0;
  const push = (bytes: Uint8Array, isLast: boolean): readonly Uint8Array[] => {
    checkWindow(path, frames, bytes);
    try {
      zstd.push(bytes, isLast);
    } catch (cause) {
      throw damaged(path, 'zstd', cause);
    }
    const taken = blocks;
    blocks = [];
    return taken;
  };
  for await (const piece of piecesOf(path, signal, PACKED_BYTES)) {
    for (let start = 0; start < piece.length; start += ZSTD_SLICE_BYTES) {
      const slice = piece.subarray(start, start + ZSTD_SLICE_BYTES);
      bytesRead += slice.length;
      for (const bytes of push(slice, false)) yield { bytes, bytesRead };
    }
  }
  for (const bytes of push(new Uint8Array(0), true)) yield { bytes, bytesRead };
}

function piecesOf(path: string, signal: AbortSignal, highWaterMark: number): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark, signal });
}

function checkWindow(path: string, frames: ZstdFrames, bytes: Uint8Array): void {
  try {
    frames.push(bytes);
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new SourceError('unreadable', `${path} cannot be unpacked as zstd: ${reason}`, { cause });
  }
}

function damaged(path: string, kind: string, cause: unknown): SourceError {
  const reason = reasonOf(cause);
  const hint = 'Check that the file is complete; what came before is taken';
  return new SourceError('unreadable', `${path} cannot be unpacked as ${kind}: ${reason}. ${hint}`, { cause });
}

/** The largest window that is unpacked, in bytes: 32 MiB, which all levels up to 20 keep to. */
const MAX_WINDOW_BYTES = 32 * 1024 * 1024;

const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a5;
/** Length of a dictionary's id, by the two bits that tell it. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];

/**
 * Walks through the frames of a zstd file (RFC 8878) ahead of the decompressor, so that a frame is refused before memory is
 * taken for its window, of which a header of six bytes may ask for gigabytes. Other content is left to the decompressor.
 */
export class ZstdFrames {
  private head: number[] = [];
  private skipBytes = 0;
  private isInFrame = false;
  private checksumBytes = 0;

  /** @throws Error for a frame whose window is too large. */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.skipBytes > 0) {
        const skipped = Math.min(this.skipBytes, bytes.length - at);
        this.skipBytes -= skipped;
        at += skipped;
        continue;
      }
      this.head.push(bytes[at] ?? 0);
      at += 1;
      if (this.isInFrame) this.lookAtBlock();
      else this.lookAtFrame();
    }
  }

  private lookAtFrame(): void {
    const { head } = this;
    if (head.length < 5) return;
    const magic = this.number(0, 4);
    if (magic !== FRAME_MAGIC) {
      if (Math.floor(magic / 16) !== SKIPPABLE_MAGIC) this.skipBytes = Number.POSITIVE_INFINITY;
      else if (head.length === 8) this.next(this.number(4, 4));
      return;
    }
    const flags = head[4] ?? 0;
    const isSingleSegment = (flags & 0x20) !== 0;
    const sizeBytes = flags >> 6 === 0 ? Number(isSingleSegment) : 1 << (flags >> 6);
    const idBytes = DICTIONARY_ID_BYTES[flags & 3] ?? 0;
    const sizeAt = 5 + (isSingleSegment ? 0 : 1) + idBytes;
    if (head.length < sizeAt + sizeBytes) return;
    const windowBytes = isSingleSegment ? this.number(sizeAt, sizeBytes) : windowOf(head[5] ?? 0);
    if (windowBytes > MAX_WINDOW_BYTES) {
      const mib = Math.round(windowBytes / 2 ** 20);
      throw new Error(`it needs a window of ${mib} MiB; at most 32 are supported. Pack it without --long and --ultra`);
    }
    this.checksumBytes = (flags & 4) === 0 ? 0 : 4;
    this.isInFrame = true;
    this.next(0);
  }

  private lookAtBlock(): void {
    if (this.head.length < 3) return;
    const header = this.number(0, 3);
    // A block of one repeated byte has one byte, whatever its size says.
    const isRepeated = ((header >> 1) & 3) === 1;
    const isLast = (header & 1) === 1;
    this.isInFrame = !isLast;
    this.next((isRepeated ? 1 : header >> 3) + (isLast ? this.checksumBytes : 0));
  }

  private next(skipBytes: number): void {
    this.head = [];
    this.skipBytes = skipBytes;
  }

  /** Little-endian. */
  private number(at: number, length: number): number {
    let value = 0;
    for (let index = at + length - 1; index >= at; index--) value = value * 256 + (this.head[index] ?? 0);
    return value;
  }
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}

/** How a file is compressed, by the last ending of its name. */
export type Compression = 'gzip' | 'zstd';

const COMPRESSED_ENDINGS: readonly (readonly [RegExp, Compression])[] = [
  [/\.gz$/i, 'gzip'],
  [/\.zst$/i, 'zstd'],
];

/** The compression that a name stands for; `undefined` where it is none that is known. */
export function compressionOf(path: string): Compression | undefined {
  return COMPRESSED_ENDINGS.find(([ending]) => ending.test(path))?.[1];
}

/** The name without the ending of its compression. */
export function uncompressedName(path: string): string {
  return compressionOf(path) === undefined ? path : path.replace(/\.\w+$/, '');
}
