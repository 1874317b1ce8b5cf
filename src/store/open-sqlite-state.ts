import { Kysely, SqliteDialect, sql } from 'kysely';
import { LibsqlDatabase } from './libsql-database.js';
import { migrateToLatest } from './migrations.js';
import { SqlState } from './sql-state.js';
import type { State } from './state.js';
import type { StateTables } from './state-tables.js';

/** How long a statement waits for another program that holds the database, in milliseconds. */
const BUSY_TIMEOUT_MS = 2_000;

/**
 * Opens the state in one SQLite file, creates it where there is none, and brings its schema forward.
 * @param path of the file, usually `<data>/state.db`; its folder exists.
 * @param busyTimeoutMs how long to wait for another program that holds it, in milliseconds; default 2,000.
 * @throws StoreError when it is locked, damaged, cannot be written or comes from a newer version.
 */
export async function openSqliteState(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): Promise<State> {
  const database = new LibsqlDatabase(path, busyTimeoutMs);
  const db = new Kysely<StateTables>({ dialect: new SqliteDialect({ database }) });
  try {
    await migrateToLatest(db, path);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return new SqlState(db, {
    async sync() {
      // A commit in this mode is synced with the next checkpoint only.
      await sql`PRAGMA wal_checkpoint(PASSIVE)`.execute(db);
    },
    // A file is there or not for each statement anew.
    problem: () => null,
  });
}
