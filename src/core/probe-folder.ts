import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Finds out whether a folder can be written: writes a block into it, syncs and removes it. Creates the folder where it is
 * missing, but not the one above it.
 * @throws Error of the file system when it cannot.
 */
export async function probeFolder(folder: string): Promise<void> {
  await mkdir(folder).catch(() => undefined);
  const path = join(folder, '.probe');
  try {
    const file = await open(path, 'w');
    try {
      await file.write(PROBE);
      await file.sync();
    } finally {
      await file.close();
    }
  } finally {
    await rm(path, { force: true });
  }
}

/** A whole block: less may still find room in what is taken already. */
const PROBE = Buffer.alloc(4_096);
