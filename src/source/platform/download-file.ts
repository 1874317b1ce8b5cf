import { open } from 'node:fs/promises';
import { errorCode } from '../../component/error-code.js';
import { readableBytes } from '../../component/readable-bytes.js';
import type { PlatformAnswer } from './platform-answer.js';
import { PlatformError } from './platform-error.js';

/** Where a download goes, and how much it may be. */
export interface DownloadTarget {
  /** Made anew. */
  readonly path: string;
  readonly maxBytes: number;
  readonly onProgress?: (bytesRead: number, totalBytes: number) => void;
}

/**
 * Writes an answer's body to a file as it comes.
 * @returns its length in bytes.
 * @throws PlatformError `tooLarge`, as soon as that is known; `disk` when the file cannot be written.
 */
export async function downloadFile(answer: PlatformAnswer, target: DownloadTarget): Promise<number> {
  const { url, lengthBytes, body } = answer;
  if ((lengthBytes ?? 0) > target.maxBytes) throw tooLarge(url, target.maxBytes);
  const file = await written(target.path, open(target.path, 'w', 0o600));
  let byteCount = 0;
  try {
    for await (const chunk of body) {
      byteCount += chunk.byteLength;
      if (byteCount > target.maxBytes) throw tooLarge(url, target.maxBytes);
      await written(target.path, file.writeFile(chunk));
      target.onProgress?.(byteCount, lengthBytes ?? 0);
    }
  } finally {
    await file.close();
  }
  return byteCount;
}

function tooLarge(url: string, maxBytes: number): PlatformError {
  const limit = readableBytes(maxBytes);
  return new PlatformError('tooLarge', `${url}: larger than ${limit}; --platform-max-file allows more`);
}

async function written<T>(path: string, writing: Promise<T>): Promise<T> {
  try {
    return await writing;
  } catch (cause) {
    const reason = errorCode(cause) === 'ENOSPC' ? 'the disk is full; free some space' : String(cause);
    throw new PlatformError('disk', `cannot write ${path}: ${reason}`, { cause });
  }
}
