import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { reasonOf } from '../component/reason-of.js';
import { compressionOf } from './compression.js';
import { SourceError } from './record-source.js';
import { ZstdFrames } from './zstd-frames.js';

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
