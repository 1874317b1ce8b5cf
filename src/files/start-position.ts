import { stat } from 'node:fs/promises';
import { hashOfHead, type TailPosition } from './tail-position.js';

/** The position of an offset in a file that was never read; `undefined` for its beginning, or when it is not there. */
export async function startPosition(path: string, offset: number): Promise<TailPosition | undefined> {
  if (offset === 0) return undefined;
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return { inode: String(found.ino), offset, line: 1, headBytes: 0, headHash: hashOfHead(new Uint8Array(0)) };
}
