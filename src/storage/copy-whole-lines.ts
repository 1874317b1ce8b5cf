import { open } from 'node:fs/promises';

const CHUNK_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Copies a file of lines as long as it is now, up to its last line break: what is being written behind that is not whole.
 * @returns how many bytes were copied
 * @throws errors of the file system
 */
export async function copyWholeLines(from: string, to: string): Promise<number> {
  const source = await open(from, 'r');
  try {
    const { size } = await source.stat();
    const target = await open(to, 'w', 0o600);
    try {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(size, 1)));
      let copied = 0;
      let whole = 0;
      while (copied < size) {
        const { bytesRead } = await source.read(chunk, 0, Math.min(chunk.length, size - copied), copied);
        if (bytesRead === 0) break;
        const part = chunk.subarray(0, bytesRead);
        await target.writeFile(part);
        const last = part.lastIndexOf(LINE_FEED);
        if (last >= 0) whole = copied + last + 1;
        copied += bytesRead;
      }
      await target.truncate(whole);
      return whole;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}
