import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { createFolder } from '../core/folders.js';

/** Free room that a file system must have for the engine's JSONL to be led there, in bytes: 512 MiB. */
const MIN_FREE_BYTES = 512 * 1024 * 1024;

/**
 * Makes a folder that no other user can read, at the first of some paths that can be written and has room: the engine
 * complains on the user's terminal when its telemetry file cannot be written. `undefined` where there is none.
 */
export function makePrivateFolder(paths: readonly string[]): string | undefined {
  for (const path of paths) {
    try {
      createFolder(dirname(path), 0o700);
      const { bavail, bsize } = statfsSync(dirname(path));
      if (bavail * bsize < MIN_FREE_BYTES) continue;
      mkdirSync(path, 0o700);
      return path;
    } catch {
      // Not here, then.
    }
  }
  return undefined;
}

/** Removes such a folder; one that cannot be removed is left. */
export function removePrivateFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Of a command still at work in the background, say.
  }
}
