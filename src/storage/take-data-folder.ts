import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { createFolder } from '../core/create-folder.js';
import { errorCode } from '../core/error-code.js';
import { DataFolderLock } from './data-folder-lock.js';
import { StoreError } from './store-error.js';

/**
 * Creates the data folder where it is missing and takes it for this process.
 * @throws StoreError when it cannot be created or written.
 * @throws DataFolderInUseError when another process holds it.
 */
export function takeDataFolder(folder: string, pid: number, nowUnixMs: number): DataFolderLock {
  try {
    createFolder(folder);
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    throw new StoreError(
      'readOnly',
      `${folder}: the data folder cannot be created (${code}); pass a folder that this user can write with --data-dir`,
      { cause },
    );
  }
  checkWritable(join(folder, 'runs'));
  return DataFolderLock.acquire(folder, { pid, since: new Date(nowUnixMs).toISOString(), address: null });
}

/** A program that can write only beside the record logs would import nothing. */
function checkWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    if (code === 'ENOENT') return;
    throw new StoreError('readOnly', `${folder}: this user cannot write to it (${code}); give it the folder`, {
      cause,
    });
  }
}
