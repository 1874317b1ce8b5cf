import { closeSync, openSync, readSync } from 'node:fs';
import {
  type Dialect,
  Kysely,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
  sql,
} from 'kysely';
import Database from 'libsql';
import { errorCode, reasonOf } from '../core/errors.js';
import { NO_OBSERVER } from './execution-status.js';
import { migrateToLatest, type SchemaSteps } from './schema.js';
import { State } from './state.js';
import type { StateTables } from './state-tables.js';
import { StoreError, type StoreErrorCode } from './store-error.js';

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

/** Statements that stay prepared; of more, those that were used longest ago do not. */
const MAX_PREPARED = 128;
/** What changes the columns of others. */
const SCHEMA_CHANGE = /^\s*(?:create|alter|drop|vacuum|pragma)\b/i;

/**
 * One connection to an SQLite file for Kysely's SQLite dialect; every failure is a `StoreError`. Statements stay prepared, by
 * their text: preparing one takes longer than most of them do.
 */
export class LibsqlDatabase implements SqliteDatabase {
  private readonly database: Database.Database;
  /** The one used last stands last. */
  private readonly prepared = new Map<string, SqliteStatement>();
  private isDamaged = false;

  /**
   * @param busyTimeoutMs how long a statement waits for another program's lock; the event loop waits with it.
   * @throws StoreError if the file cannot be opened or is not a database.
   */
  constructor(
    private readonly path: string,
    busyTimeoutMs: number,
  ) {
    this.database = this.guard(() => new Database(path));
    this.guard(() => {
      this.database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
      // The state lags behind the record logs and is rebuilt from them, so losing the last transactions in a power
      // cut costs a few exports sent twice, while FULL would cost one more fsync for each saved cursor. WAL with NORMAL never
      // damages the file, and loses nothing at all when only the process dies.
      this.database.exec('PRAGMA journal_mode = WAL');
      this.database.exec('PRAGMA synchronous = NORMAL');
    });
  }

  prepare(sql: string): SqliteStatement {
    // SQLite rolls back by itself if the disk is full, and when it is closed: reporting that would hide the cause.
    // The driver ends the whole process when a closed connection is asked for its transaction.
    if (sql === 'rollback' && !(this.database.open && this.database.inTransaction)) return NOTHING;
    let statement = this.prepared.get(sql);
    if (statement === undefined) {
      if (SCHEMA_CHANGE.test(sql)) {
        this.prepared.clear();
        return this.prepareNow(sql);
      }
      statement = this.prepareNow(sql);
      const [oldest] = this.prepared.keys();
      if (this.prepared.size >= MAX_PREPARED && oldest !== undefined) this.prepared.delete(oldest);
    } else this.prepared.delete(sql);
    this.prepared.set(sql, statement);
    return statement;
  }

  private prepareNow(sql: string): SqliteStatement {
    const prepare = () => this.database.prepare(sql);
    const statement = this.guard(prepare);
    const run = <Result>(action: () => Result) => {
      try {
        return this.guard(action);
      } catch (error) {
        // It may stand in the middle of what it was doing.
        this.prepared.delete(sql);
        throw error;
      }
    };
    return {
      reader: statement.reader,
      all: (parameters) => run(() => statement.all(storableValues(parameters))),
      run: (parameters) => run(() => statement.run(storableValues(parameters))),
      // A caller that goes through rows one by one may run it again meanwhile.
      iterate: (parameters) => this.guard(() => prepare().iterate(storableValues(parameters))),
    };
  }

  /**
   * Checkpoints the write-ahead log first: the driver leaves closing the connection to SQLite, once the last statement
   * was garbage collected, and a folder copied before should contain a complete file. If that fails, as on
   * a full disk, the log stays beside the file, and the next program that opens the file reads both: nothing is lost.
   */
  close(): void {
    this.prepared.clear();
    try {
      this.database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
    } catch {
      // The error was reported by the write.
    } finally {
      this.database.close();
    }
  }

  /** Closes the file and leaves its write-ahead log to other connections. */
  release(): void {
    this.prepared.clear();
    this.database.close();
  }

  private guard<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw this.toStoreError(error);
    }
  }

  private toStoreError(error: unknown): StoreError {
    const code = storeErrorCode(error);
    const passed = code === 'corrupt' && !this.isDamaged ? unlessDamaged(this.path) : undefined;
    if (passed !== undefined) {
      return new StoreError('unavailable', `${this.path}: ${passed}: check the disk, then try again`, { cause: error });
    }
    // What is damaged stays so; looking takes long.
    if (code === 'corrupt') this.isDamaged = true;
    const reason = code === 'unavailable' ? ` (${reasonOf(error)})` : '';
    return new StoreError(code, `${this.path}: ${ADVICE[code]}${reason}`, { cause: error });
  }
}

/** What is read of a file at a time, in bytes. */
const READ_BYTES = 1024 * 1024;

/**
 * SQLite takes what it could not read for zeros now and then, and the file for damaged: before somebody makes a new one, all of it is read and checked.
 * @returns what was the matter instead; `undefined` where the file is damaged.
 */
function unlessDamaged(path: string): string | undefined {
  try {
    readWhole(path);
  } catch (error) {
    return `the file cannot be read (${reasonOf(error)})`;
  }
  try {
    const database = new Database(path, { readonly: true });
    try {
      const [first] = database.prepare('PRAGMA integrity_check(1)').raw().all();
      const isSound = Array.isArray(first) && first[0] === 'ok';
      return isSound ? 'the file could not be read for a moment; it is not damaged' : undefined;
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

function readWhole(path: string): void {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    while (readSync(file, buffer) > 0);
  } finally {
    closeSync(file);
  }
}

/** What can go wrong with a file. */
type SqliteErrorCode = Exclude<StoreErrorCode, 'unreachable' | 'refused' | 'newer'>;

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

const ADVICE: Readonly<Record<SqliteErrorCode, string>> = {
  locked: 'the database is locked by another program; stop whatever else has it open',
  readOnly: 'the database cannot be written; give this user write access to the file and its folder',
  full: 'the disk is full; free some space',
  corrupt:
    'the file is damaged or is not an SQLite database; run-bridge rebuild creates a new one from the rest of the data folder and keeps this one',
  unstorable: 'the database cannot keep a value: it is too large',
  unavailable: 'the database cannot be used; check that its folder exists and can be written',
};

/** SQLite's result codes (https://www.sqlite.org/rescode.html), by the names that libsql gives them. */
function storeErrorCode(error: unknown): SqliteErrorCode {
  const code = errorCode(error) ?? '';
  if (/^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)) return 'locked';
  if (/^SQLITE_(READONLY|PERM|AUTH)/.test(code)) return 'readOnly';
  if (/^SQLITE_(TOOBIG|MISMATCH)/.test(code)) return 'unstorable';
  if (code.startsWith('SQLITE_FULL')) return 'full';
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return 'corrupt';
  return 'unavailable';
}

/** NUL, which PostgreSQL keeps in no text, and halves of surrogate pairs, which are no Unicode. */
const UNSTORABLE = /[\0\ud800-\udfff]/;
/** Replaces NUL, as terminals and editors display it. */
const NUL_SYMBOL = '\u2400';

/**
 * Returns a statement's parameters in a form that every database stores and compares: in texts, NUL becomes `␀` and half a surrogate pair
 * the replacement character. Telemetry and senders and receivers of webhooks may contain them, and they must not prevent a
 * run from being written.
 */
export function storableValues(parameters: readonly unknown[]): readonly unknown[] {
  return parameters.some(isUnstorable) ? parameters.map(storable) : parameters;
}

function isUnstorable(value: unknown): value is string {
  return typeof value === 'string' && UNSTORABLE.test(value);
}

function storable(value: unknown): unknown {
  // Encoding replaces invalid Unicode, and keeps complete pairs.
  return isUnstorable(value) ? Buffer.from(value).toString().replaceAll('\0', NUL_SYMBOL) : value;
}
