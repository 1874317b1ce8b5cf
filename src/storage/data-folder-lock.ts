import { accessSync, constants, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { errorCode } from '../core/errors.js';
import { createFolder } from '../core/folders.js';
import { DataFolderInUseError, holderPath, LOCK_FILE, type LockHolder, readHolder } from './data-folder.js';
import { StoreError } from './store-error.js';

/**
 * Locks a data folder for one program. The lock is SQLite's exclusive lock on a file, so the kernel releases it when the
 * process dies in any way. A small text file beside it names the process; it is only used for the message and may be stale.
 */
export class DataFolderLock {
  /**
   * Takes the folder.
   * @throws DataFolderInUseError when another process, or another part of this one, holds it.
   * @throws StoreError when the folder cannot be written.
   */
  static acquire(folder: string, holder: LockHolder): DataFolderLock {
    const database = openLocked(folder);
    const lock = new DataFolderLock(folder, database, holder);
    try {
      lock.writeHolder(holder);
      return lock;
    } catch (error) {
      database.close();
      throw notWritable(folder, error);
    }
  }

  private constructor(
    private readonly folder: string,
    private readonly database: Database.Database,
    private readonly holder: LockHolder,
  ) {}

  /** Publishes the address of this process to later ones. */
  announce(address: string): void {
    this.writeHolder({ ...this.holder, address });
  }

  release(): void {
    rmSync(holderPath(this.folder), { force: true });
    this.database.close();
  }

  private writeHolder(holder: LockHolder): void {
    writeFileSync(holderPath(this.folder), `${JSON.stringify(holder)}\n`);
  }
}

function openLocked(folder: string): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(join(folder, LOCK_FILE));
    database.exec('PRAGMA busy_timeout = 0');
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    const code = errorCode(error) ?? '';
    if (code.startsWith('SQLITE_BUSY')) throw new DataFolderInUseError(folder, readHolder(folder), { cause: error });
    throw notWritable(folder, error);
  }
}

function notWritable(folder: string, cause: unknown): StoreError {
  const message = `${folder}: the data folder cannot be locked; check that it exists and that this user can write there`;
  return new StoreError('readOnly', message, { cause });
}

/**
 * Creates the data folder where it is missing and takes it for this process.
 * @throws StoreError when it cannot be created or written.
 * @throws DataFolderInUseError when another process holds it.
 */
export function takeDataFolder(folder: string, pid: number, nowUnixMs: number): DataFolderLock {
  createDataFolder(folder);
  checkWritable(join(folder, 'runs'));
  return DataFolderLock.acquire(folder, { pid, since: new Date(nowUnixMs).toISOString(), address: null });
}

/** Creates the data folder where it is missing. @throws StoreError */
export function createDataFolder(folder: string): void {
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
