import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { reasonOf } from '../core/errors.js';
import { ZSTD_SLICE_BYTES, ZstdUnpacker } from '../core/zstd.js';
import { SourceError } from './record-source.js';

/** A decompressed piece of a file. */
export interface FilePiece {
  readonly bytes: Uint8Array;
  /** Bytes of the file read so far, before decompression. */
  readonly bytesRead: number;
}

/** Bytes read at a time, from an uncompressed and from a compressed file. */
const READ_BYTES = 1024 * 1024;
const PACKED_BYTES = 64 * 1024;
/** Decompressed bytes that gzip returns at a time. */
const GUNZIP_BYTES = 256 * 1024;
/**
 * Reads a file or pipe in pieces of at most 1 MiB, decompressing it if its name ends in `.gz` or `.zst`.
 * @throws SourceError if it is damaged or cut off; errors of the file system if it cannot be read
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
  const zstd = new ZstdUnpacker();
  let bytesRead = 0;
  for await (const piece of piecesOf(path, signal, PACKED_BYTES)) {
    for (let start = 0; start < piece.length; start += ZSTD_SLICE_BYTES) {
      const slice = piece.subarray(start, start + ZSTD_SLICE_BYTES);
      bytesRead += slice.length;
      for (const bytes of wholeZstd(path, zstd.push(slice))) yield { bytes, bytesRead };
    }
  }
  for (const bytes of wholeZstd(path, zstd.end())) yield { bytes, bytesRead };
}

function* wholeZstd(path: string, blocks: Iterable<Uint8Array>): Generator<Uint8Array> {
  try {
    yield* blocks;
  } catch (cause) {
    throw damaged(path, 'zstd', cause);
  }
}

function piecesOf(path: string, signal: AbortSignal, highWaterMark: number): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark, signal });
}

function damaged(path: string, kind: string, cause: unknown): SourceError {
  const reason = reasonOf(cause);
  const hint = 'Check that the file is complete; what came before is taken';
  return new SourceError('unreadable', `${path} cannot be unpacked as ${kind}: ${reason}. ${hint}`, { cause });
}

/** How a file is compressed, by the last ending of its name. */
export type Compression = 'gzip' | 'zstd';

const COMPRESSED_ENDINGS: readonly (readonly [RegExp, Compression])[] = [
  [/\.gz$/i, 'gzip'],
  [/\.zst$/i, 'zstd'],
];

/** Returns the compression of a file by its name; `undefined` for none that is known. */
export function compressionOf(path: string): Compression | undefined {
  return COMPRESSED_ENDINGS.find(([ending]) => ending.test(path))?.[1];
}

/** Returns the name without the ending of the compression. */
export function uncompressedName(path: string): string {
  return compressionOf(path) === undefined ? path : path.replace(/\.\w+$/, '');
}
