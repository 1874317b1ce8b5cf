import { createFolder } from '../component/create-folder.js';
import { errorCode } from '../component/error-code.js';
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
  return DataFolderLock.acquire(folder, { pid, since: new Date(nowUnixMs).toISOString(), address: null });
}
