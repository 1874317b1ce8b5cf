import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { errorCode } from '../component/error-code.js';

/** A file that records are streamed to cannot be opened; the message says what to do. */
export class OutputError extends Error {
  override readonly name = 'OutputError';
}

/** Opens a file for appending. @throws OutputError */
export async function openJsonlStream(path: string): Promise<Writable> {
  try {
    return (await open(path, 'a')).createWriteStream();
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    throw new OutputError(`${path} cannot be written (${code}); pass a file in a folder that is there with --jsonl`, {
      cause,
    });
  }
}
