import { LibsqlDatabase } from './libsql-database.js';

/** How long a copy waits for another program that holds the database, in milliseconds. */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Writes the state as it is now to a file that is not there yet, while others may go on to change it.
 * @throws StoreError
 */
export function backupSqliteState(path: string, to: string): void {
  const database = new LibsqlDatabase(path, BUSY_TIMEOUT_MS);
  try {
    database.prepare('VACUUM INTO ?').run([to]);
  } finally {
    database.release();
  }
}
