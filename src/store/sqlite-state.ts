import { Kysely, SqliteDialect, sql } from 'kysely';
import type { CursorStore } from './cursor-store.js';
import type { ExecutionStore } from './execution-store.js';
import { LibsqlDatabase } from './libsql-database.js';
import { migrateToLatest } from './migrations.js';
import type { PullStore } from './pull-store.js';
import type { RunStore } from './run-store.js';
import { SqlCursorStore } from './sql-cursor-store.js';
import { SqlExecutionStore } from './sql-execution-store.js';
import { SqlPullStore } from './sql-pull-store.js';
import { SqlRunStore } from './sql-run-store.js';
import type { StateTables } from './state-tables.js';

/** How long a statement waits for another program that holds the database, in milliseconds. */
const BUSY_TIMEOUT_MS = 2_000;

/** The state of a data folder in one SQLite file. */
export class SqliteState {
  /**
   * Opens the file, creates it where there is none, and brings its schema forward.
   * @param path of the file, usually `<data>/state.db`; its folder exists.
   * @param busyTimeoutMs how long to wait for another program that holds it, in milliseconds; default 2,000.
   * @throws StoreError when it is locked, damaged, cannot be written or comes from a newer version.
   */
  static async open(path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): Promise<SqliteState> {
    const database = new LibsqlDatabase(path, busyTimeoutMs);
    const db = new Kysely<StateTables>({ dialect: new SqliteDialect({ database }) });
    try {
      await migrateToLatest(db, path);
    } catch (error) {
      await db.destroy();
      throw error;
    }
    const pulls = new SqlPullStore(db, async () => {
      // A commit in this mode is synced with the next checkpoint only.
      await sql`PRAGMA wal_checkpoint(PASSIVE)`.execute(db);
    });
    const stores = [new SqlRunStore(db), new SqlCursorStore(db), new SqlExecutionStore(db), pulls] as const;
    return new SqliteState(...stores, () => db.destroy());
  }

  private constructor(
    readonly runs: RunStore,
    readonly cursors: CursorStore,
    readonly executions: ExecutionStore,
    readonly pulls: PullStore,
    private readonly destroy: () => Promise<void>,
  ) {}

  /** Closes the file; nothing may be called afterwards. */
  async close(): Promise<void> {
    await this.destroy();
  }
}
