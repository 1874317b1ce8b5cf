import { Socket } from 'node:net';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  PostgresDialect,
  type QueryResult,
  sql,
  type TransactionSettings,
} from 'kysely';
import { type CustomTypesConfig, Pool, types } from 'pg';
import { type Clock, pause, retry } from '../core/clock.js';
import { errorCode, reasonOf } from '../core/errors.js';
import { NO_OBSERVER } from './execution-status.js';
import type { Fence } from './journal-store.js';
import { migrateToLatest, type SchemaSteps } from './schema.js';
import { storableValues } from './sqlite-state.js';
import { State } from './state.js';
import type { StateDb, StateTables } from './state-tables.js';
import { StoreError, type StoreErrorCode } from './store-error.js';

/** The oldest supported server, as `server_version_num`. */
const OLDEST_SERVER = 14_00_00;
/** See `openPostgresState`. */
const PATIENCE_MS = 5_000;
/** Of a program that was stopped in mid-transaction its locks are taken back after so long; of one of several processes, for which the others wait, when its lease is over. */
const IDLE_TIMEOUT = { alone: '60s', shared: '15s' } as const;
/** For the locks of a live one others wait so long. */
const LOCK_TIMEOUT = '30s';

/**
 * Opens the state in a PostgreSQL database and migrates its schema. Several programs may do so at the same time: one
 * migrates, the others wait for it.
 * @param url for example `postgresql://user:password@host:5432/run_bridge`
 * @param patienceMs how long to wait for a server that is starting, or was just lost, in milliseconds; default 5,000.
 * @param observer is notified of changes of runs; default: none
 * @param fence the identity of this process, if several share the database
 * @param steps of the schema; default: all that this program knows
 * @throws StoreError if the server cannot be reached, refuses the user or is too old, if the database contains
 * tables of another program, or comes from a newer version.
 */
export async function openPostgresState(
  url: string,
  clock: Clock,
  patienceMs = PATIENCE_MS,
  observer = NO_OBSERVER,
  fence?: Fence,
  steps?: SchemaSteps,
): Promise<State> {
  const where = describe(url);
  const idle = IDLE_TIMEOUT[fence === undefined ? 'alone' : 'shared'];
  const dialect = new PostgresDialect({
    pool: postgresPool(url),
    onCreateConnection: async (connection) => {
      await connection.executeQuery(
        CompiledQuery.raw(`set idle_in_transaction_session_timeout = '${idle}'; set lock_timeout = '${LOCK_TIMEOUT}'`),
      );
    },
  });
  const driver = new PostgresDriver(dialect.createDriver(), { where, patienceMs }, clock);
  const patient: Dialect = {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
  const db = new Kysely<StateTables>({ dialect: patient });
  try {
    const schema = await checkServer(db, where);
    await refusePassthrough(db, schema, where);
    await migrateToLatest(db, { where, schema, steps });
  } catch (error) {
    await db.destroy();
    throw error;
  }
  // A commit is durable here by itself.
  const nowUnixMs = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  const traits = { sync: async () => {}, problem: () => driver.problem, nowUnixMs, hasRowLocks: true };
  return new State(db, traits, observer, fence);
}

/** @returns the schema in which tables are created. */
async function checkServer(db: StateDb, where: string): Promise<string> {
  const { rows } = await sql<{ version: string; number: number; schema: string | null }>`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      current_schema() as schema`.execute(db);
  const [found] = rows;
  if (found === undefined || found.number < OLDEST_SERVER) {
    throw new StoreError(
      'refused',
      `${where}: the server is PostgreSQL ${found?.version ?? 'of an unknown version'}, and 14 or newer is needed`,
    );
  }
  if (found.schema === null) {
    throw new StoreError(
      'refused',
      `${where}: there is no schema to create tables in; create the one that search_path names, or let this user use it`,
    );
  }
  return found.schema;
}

/** DATABASE_URL may be another program's: its database is left alone. */
async function refusePassthrough(db: StateDb, schema: string, where: string): Promise<void> {
  const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).filter(
    (table) => table.schema === schema && !table.isView,
  );
  if (tables.length === 0 || tables.some((table) => table.name === 'kysely_migration')) return;
  throw new StoreError(
    'refused',
    `${where}: the schema ${schema} holds tables of something else (${tables[0]?.name}); give run-bridge a database of its own, or set RUN_BRIDGE_DATABASE_URL=off to keep the state in the data folder`,
  );
}

/** Returns the database without user and password, for messages. */
function describe(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url.replace('@/', '@localhost/'));
  const host = searchParams.get('host') ?? (hostname === '' ? 'localhost' : hostname);
  return `PostgreSQL at ${host}${port === '' ? '' : `:${port}`}${decodeURIComponent(pathname)}`;
}

/** Between two tries to get a connection, in milliseconds. */
const RETRY_MS = 200;
/** How often a server that is away is looked for, in milliseconds. */
const PROBE_MS = 1_000;

/** What the driver goes by. */
export interface PostgresDriverConfig {
  /** The server and database, for messages. */
  readonly where: string;
  /** How long to wait for a connection to a server that was just lost, or is starting, in milliseconds. */
  readonly patienceMs: number;
}

/**
 * Kysely's driver for PostgreSQL, which tolerates a restart of the server. A failed connection is retried
 * for a while, and so is a statement on a broken one if repeating it is harmless: a query outside of a transaction,
 * the start of a transaction. For anything else it is unknown whether it was executed; the stores' callers repeat it, and
 * their writes may happen twice. Every failure is a `StoreError`.
 */
export class PostgresDriver implements Driver {
  private readonly connections = new WeakMap<DatabaseConnection, GuardedConnection>();
  private readonly stop = new AbortController();
  private failure: StoreError | null = null;

  constructor(
    private readonly driver: Driver,
    private readonly config: PostgresDriverConfig,
    private readonly clock: Clock,
  ) {}

  /** Returns why the server cannot be used at the moment; `null` while it can. */
  get problem(): string | null {
    return this.failure?.message ?? null;
  }

  init(): Promise<void> {
    return this.driver.init();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const { where } = this.config;
    const connection = new GuardedConnection(await this.acquire(), where, async (broken) => {
      await this.driver.releaseConnection(broken);
      return await this.acquire();
    });
    this.connections.set(connection, connection);
    return connection;
  }

  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    await this.driver.beginTransaction(connection, settings);
    this.mark(connection, true);
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await this.driver.commitTransaction(connection);
    this.mark(connection, false);
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await this.driver.rollbackTransaction(connection);
    this.mark(connection, false);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    const inner = this.connections.get(connection)?.inner;
    if (inner != null) await this.driver.releaseConnection(inner);
  }

  async destroy(): Promise<void> {
    this.stop.abort();
    await this.driver.destroy();
  }

  private mark(connection: DatabaseConnection, isInTransaction: boolean): void {
    const guarded = this.connections.get(connection);
    if (guarded !== undefined) guarded.isInTransaction = isInTransaction;
  }

  private async acquire(): Promise<DatabaseConnection> {
    const { patienceMs, where } = this.config;
    const rules = { clock: this.clock, signal: this.stop.signal, maxElapsedMs: patienceMs };
    // Once the server is known to be down, callers do not wait.
    const delayMs = (cause: unknown) =>
      this.failure === null && toPostgresError(cause, where).code === 'unreachable' ? RETRY_MS : null;
    try {
      const connection = await retry(() => this.driver.acquireConnection(), { ...rules, delayMs });
      this.failure = null;
      return connection;
    } catch (cause) {
      const error = toPostgresError(cause, where);
      this.note(error);
      throw error;
    }
  }

  /** Polls a server that is down until it is back, so that readiness is correct also without any queries. */
  private note(error: StoreError): void {
    if (error.code !== 'unreachable') return;
    const isKnown = this.failure !== null;
    this.failure = error;
    if (!isKnown) void this.probe();
  }

  private async probe(): Promise<void> {
    while (this.failure !== null) {
      await pause(this.clock, PROBE_MS, this.stop.signal);
      if (this.failure === null || this.stop.signal.aborted) return;
      try {
        await this.driver.releaseConnection(await this.driver.acquireConnection());
        this.failure = null;
      } catch (cause) {
        this.failure = toPostgresError(cause, this.config.where);
      }
    }
  }
}

/**
 * A connection whose failures are `StoreError`s, and which is replaced if it is broken before anything
 * depends on it; so may be the next one, and all that were open when the server was lost.
 */
class GuardedConnection implements DatabaseConnection {
  isInTransaction = false;

  /** @param inner `null` where it broke, and no other one could be had */
  constructor(
    public inner: DatabaseConnection | null,
    private readonly where: string,
    private readonly replace: (broken: DatabaseConnection) => Promise<DatabaseConnection>,
  ) {}

  async executeQuery<R>(given: CompiledQuery): Promise<QueryResult<R>> {
    const query = { ...given, parameters: storableValues(given.parameters) };
    for (let tries = 1; ; tries += 1) {
      const { inner } = this;
      try {
        return await present(inner).executeQuery<R>(query);
      } catch (cause) {
        const error = toPostgresError(cause, this.where);
        const isRepeatable = error.code === 'unreachable' && !this.isInTransaction && HARMLESS.test(query.sql);
        if (inner === null || !isRepeatable || tries > MAX_CONNECTIONS) throw error;
        this.inner = null;
        this.inner = await this.replace(inner);
      }
    }
  }

  streamQuery<R>(query: CompiledQuery, chunkSize?: number): AsyncIterableIterator<QueryResult<R>> {
    return present(this.inner).streamQuery<R>({ ...query, parameters: storableValues(query.parameters) }, chunkSize);
  }
}

function present(connection: DatabaseConnection | null): DatabaseConnection {
  if (connection === null) throw new Error('the connection was lost');
  return connection;
}

/** Statements that may be repeated. */
const HARMLESS = /^\s*(select|begin|start transaction)\b/i;

/** Returns a failure between the program and a PostgreSQL server, as a `StoreError` that says how to fix it. */
export function toPostgresError(cause: unknown, where: string): StoreError {
  if (cause instanceof StoreError) return cause;
  const message = messageOf(cause);
  const [code, advice] = explain(errorCode(cause) ?? '', message);
  return new StoreError(code, `${where}: ${advice} (${message})`, { cause });
}

type Explanation = readonly [StoreErrorCode, string];

const UNREACHABLE: Explanation = [
  'unreachable',
  'the server cannot be reached; check that it runs, and host and port in DATABASE_URL',
];
const LOST: Explanation = ['unreachable', 'the connection was lost; retrying'];
const NOT_LET_IN: Explanation = [
  'refused',
  'the server does not let this user in; check user and password in DATABASE_URL, and pg_hba.conf on the server',
];
const UNTRUSTED: Explanation = [
  'refused',
  "the server's certificate is not trusted; give its authority's file as sslrootcert in DATABASE_URL, or sslmode=no-verify where that is no matter",
];

/** PostgreSQL's codes (https://www.postgresql.org/docs/current/errcodes-appendix.html), Node's, and messages of `pg` without one. */
const EXPLANATIONS: readonly (readonly [RegExp, Explanation])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, ['unreachable', 'the host is not known; check its name in DATABASE_URL']],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENOENT|EACCES)$/, UNREACHABLE],
  [/^(ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|08...|57P01|57P02)$/, LOST],
  [/^57P03$/, ['unreachable', 'the server is starting or stopping; try again in a moment']],
  [
    /^53300$/,
    ['unreachable', 'the server takes no more connections; raise its max_connections, or close other programs'],
  ],
  [/^(28...|0L...|0P...)$/, NOT_LET_IN],
  [/^3D000$/, ['refused', 'there is no such database; create it (createdb NAME), or correct DATABASE_URL']],
  [/^3F000$/, ['refused', 'there is no schema to create tables in; create the one that search_path names']],
  [
    /^42501$/,
    ['readOnly', 'this user lacks a right; GRANT it CREATE on the schema, and let it own the tables of run-bridge'],
  ],
  [
    /^25006$/,
    [
      'readOnly',
      'the database can only be read; give the address of the primary server, or set default_transaction_read_only to off',
    ],
  ],
  [/^(53100|58030)$/, ['full', "the server's disk is full or fails; free some space there"]],
  // Data exceptions, and limits of the server, as of an index's key.
  [/^(22...|54...)$/, ['unstorable', 'the database cannot keep a value']],
  [/^XX00[12]$/, ['corrupt', 'the database is damaged; restore it from a backup']],
  [/^(40001|40P01|55P03)$/, ['locked', 'another program has locked what is to be written; retrying']],
  [/(CERT|SIGNATURE|ISSUER|ALTNAME)/, UNTRUSTED],
];

/** Messages of `pg` without a code. */
const MESSAGES: readonly (readonly [RegExp, Explanation])[] = [
  [/client password must be a string|no password/i, NOT_LET_IN],
  [/does not support SSL/i, ['refused', 'the server does not speak TLS; leave sslmode out of DATABASE_URL']],
  [/timeout|timed out/i, UNREACHABLE],
  [/connection (was lost|terminated|ended|error)|not queryable|closed the connection/i, LOST],
];

function explain(code: string, message: string): Explanation {
  const byCode = EXPLANATIONS.find(([pattern]) => pattern.test(code));
  const found = byCode ?? MESSAGES.find(([pattern]) => pattern.test(message));
  return found?.[1] ?? ['unavailable', 'the database cannot be used'];
}

/** Returns the message of an error; a host with several addresses gives a list of errors without one. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return reasonOf(error);
}

/** Connections that the program has open at most. */
export const MAX_CONNECTIONS = 10;
/** How long to wait for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that does not answer a statement for this long counts as lost, in milliseconds. */
const SILENCE_MS = 120_000;

/** Opens connections to a PostgreSQL server as they are needed. */
export function postgresPool(url: string): Pool {
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    fallback_application_name: 'run-bridge',
    types: POSTGRES_TYPES,
    stream: silentSocket,
  });
  // A connection that breaks while idle is reported to its next user; an unhandled event would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

function silentSocket(): Socket {
  const socket = new Socket();
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('the server timed out')));
  return socket;
}

/** PostgreSQL's numbers for its types `bigint` and `numeric`. */
const INT8 = 20;
const NUMERIC = 1700;

/**
 * How values come back: as from SQLite. `bigint` (also what `count` answers) and `numeric` (what `sum` makes of it) are
 * numbers; milliseconds, bytes and ids stay far below the 2^53 from which a number is not exact.
 */
export const POSTGRES_TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8 || oid === NUMERIC ? Number : types.getTypeParser(oid, format)),
};
