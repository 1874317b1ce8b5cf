import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { closeOnFailure, errorCode } from '../../core/errors.js';
import type { ArtifactPath } from './artifact-path.js';
import type { Artifact, ByteRange } from './artifact-store.js';

// Files as artifacts: only regular files count.

/** What is read in one piece, in bytes: 256 KiB. */
const CHUNK_BYTES = 256 * 1024;
/** Error codes for a path that is not a file. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO']);

/** Whether an error means that the file does not exist. */
export function isAbsent(error: unknown): boolean {
  return ABSENT.has(errorCode(error) ?? '');
}

/** Opens a file for reading; `undefined` if it does not exist. Links, folders and pipes do not count. */
export async function openRegularFile(path: string): Promise<FileHandle | undefined> {
  try {
    // Non-blocking: opening a named pipe would wait for its writer.
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await closeOnFailure(handle, () => handle.stat())).isFile()) return handle;
    await handle.close();
    return undefined;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** An open file as an artifact of a path. */
export async function describeFile(handle: FileHandle, path: ArtifactPath): Promise<Artifact> {
  const { size, mtimeNs, mtimeMs, ino } = await handle.stat({ bigint: true });
  // Files are replaced, never written over, so another content has another number or time.
  const etag = `"${ino.toString(16)}-${size.toString(16)}-${mtimeNs.toString(16)}"`;
  return { path, sizeBytes: Number(size), modifiedUnixMs: Number(mtimeMs), etag };
}

/** The bytes of an open file, which is closed with them. */
export function readFileOf(handle: FileHandle, range: ByteRange | undefined): Readable {
  // Without `end` where everything is wanted: an empty file has no last byte.
  const part = range === undefined ? {} : { start: range.from, end: range.to - 1 };
  return handle.createReadStream({ ...part, highWaterMark: CHUNK_BYTES });
}
