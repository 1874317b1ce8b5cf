import { CompiledQuery, type Dialect, Kysely, PostgresDialect, sql } from 'kysely';
import type { Clock } from '../component/clock.js';
import type { Fence } from './fence.js';
import { migrateToLatest, type SchemaSteps } from './migrations.js';
import { PostgresDriver } from './postgres-driver.js';
import { postgresPool } from './postgres-pool.js';
import { SqlState } from './sql-state.js';
import type { State } from './state.js';
import type { StateDb, StateTables } from './state-tables.js';
import { StoreError } from './store-error.js';
import { ANNOUNCING } from './webhook/announcing.js';
import type { Announcing } from './webhook/run-announcer.js';

/** The oldest server that is tested, as `server_version_num` has it. */
const OLDEST_SERVER = 14_00_00;
/** See `openPostgresState`. */
const PATIENCE_MS = 5_000;
/** Of a program that was stopped in mid-transaction its locks are taken back after so long; of one of several processes, for which the others wait, when its lease is over. */
const IDLE_TIMEOUT = { alone: '60s', shared: '15s' } as const;
/** For the locks of a live one others wait so long. */
const LOCK_TIMEOUT = '30s';

/**
 * Opens the state in a PostgreSQL database and brings its schema forward. Several programs may do so at the same time: one
 * works on the schema, the others wait for it.
 * @param url such as `postgresql://user:password@host:5432/run_bridge`
 * @param patienceMs how long to wait for a server that is just starting, or has just gone, in milliseconds; default 5,000.
 * @param announcing how events for webhooks come to be
 * @param fence where several processes share the database: which one this is
 * @param steps of the schema; default: all that this program knows
 * @throws StoreError when the server cannot be reached, does not let the user in or is too old, when the database holds
 * tables of something else, or comes from a newer version.
 */
export async function openPostgresState(
  url: string,
  clock: Clock,
  patienceMs = PATIENCE_MS,
  announcing: Announcing = ANNOUNCING,
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
    await refuseForeign(db, schema, where);
    await migrateToLatest(db, { where, schema, steps });
  } catch (error) {
    await db.destroy();
    throw error;
  }
  // A commit is durable here by itself.
  const nowUnixMs = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  const traits = { sync: async () => {}, problem: () => driver.problem, nowUnixMs, hasRowLocks: true };
  return new SqlState(db, traits, announcing, fence);
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
async function refuseForeign(db: StateDb, schema: string, where: string): Promise<void> {
  const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).filter(
    (table) => table.schema === schema && !table.isView,
  );
  if (tables.length === 0 || tables.some((table) => table.name === 'kysely_migration')) return;
  throw new StoreError(
    'refused',
    `${where}: the schema ${schema} holds tables of something else (${tables[0]?.name}); give run-bridge a database of its own, or set RUN_BRIDGE_DATABASE_URL=off to keep the state in the data folder`,
  );
}

/** The database without user and password, for messages. */
function describe(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url.replace('@/', '@localhost/'));
  const host = searchParams.get('host') ?? (hostname === '' ? 'localhost' : hostname);
  return `PostgreSQL at ${host}${port === '' ? '' : `:${port}`}${decodeURIComponent(pathname)}`;
}
