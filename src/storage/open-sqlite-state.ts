import { type Dialect, Kysely, SqliteAdapter, SqliteDialect, sql } from 'kysely';
import { LibsqlDatabase } from './libsql-database.js';
import { migrateToLatest } from './migrations.js';
import type { SchemaSteps } from './schema.js';
import { NO_OBSERVER } from './settle-runs.js';
import { State } from './state.js';
import type { StateTables } from './state-tables.js';

/** How long a statement waits for another program that holds the database, in milliseconds. */
const BUSY_TIMEOUT_MS = 2_000;

/**
 * Opens the state in one SQLite file, creates it if it does not exist, and migrates its schema.
 * @param path of the file, usually `<data>/state.db`; its folder exists.
 * @param busyTimeoutMs how long to wait for another program's lock, in milliseconds; default 2,000.
 * @param observer is notified of changes of runs; default: none
 * @param steps of the schema; default: all that this program knows
 * @throws StoreError if it is locked, damaged, cannot be written or comes from a newer version.
 */
export async function openSqliteState(
  path: string,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  observer = NO_OBSERVER,
  steps?: SchemaSteps,
): Promise<State> {
  const db = new Kysely<StateTables>({ dialect: sqliteDialect(new LibsqlDatabase(path, busyTimeoutMs)) });
  try {
    await migrateToLatest(db, { where: path, steps });
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const traits = {
    async sync() {
      // A commit in this mode is synced with the next checkpoint only.
      await sql`PRAGMA wal_checkpoint(PASSIVE)`.execute(db);
    },
    // Whether a file exists, checked for each statement.
    problem: () => null,
    nowUnixMs: sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`,
    hasRowLocks: false,
  };
  return new State(db, traits, observer);
}

/** Kysely's dialect for SQLite, except that transactions include changes of the schema. */
function sqliteDialect(database: LibsqlDatabase): Dialect {
  const dialect = new SqliteDialect({ database });
  return {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => dialect.createDriver(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}
