import type { CompiledQuery, DatabaseConnection, Driver, QueryResult, TransactionSettings } from 'kysely';
import type { Clock } from '../component/clock.js';
import { pause } from '../component/pause.js';
import { toPostgresError } from './postgres-error.js';
import { MAX_CONNECTIONS } from './postgres-pool.js';
import { storableValues } from './storable-values.js';
import type { StoreError } from './store-error.js';

/** Between two tries to get a connection, in milliseconds. */
const RETRY_MS = 200;
/** How often a server that is away is looked for, in milliseconds. */
const PROBE_MS = 1_000;

/** What the driver goes by. */
export interface PostgresDriverConfig {
  /** The server and database, for messages. */
  readonly where: string;
  /** How long whoever needs a connection waits for a server that has just gone, or is just starting, in milliseconds. */
  readonly patienceMs: number;
}

/**
 * Kysely's driver for PostgreSQL, patient with a server that is restarted. A connection that cannot be had is tried again
 * for a while, and so is what was said on a broken one where saying it twice does no harm: a query outside of a transaction,
 * a transaction's beginning. Of anything else it is not known whether it was done; the stores' callers say it again, and
 * their writes may be done twice. Whatever fails is a `StoreError`.
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

  /** Why the server cannot be used at the moment; `null` while it can. */
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
    const untilMs = this.clock.monotonicMs() + this.config.patienceMs;
    for (;;) {
      try {
        const connection = await this.driver.acquireConnection();
        this.failure = null;
        return connection;
      } catch (cause) {
        const error = toPostgresError(cause, this.config.where);
        // Once it is known to be away, nobody is made to wait.
        const isPatient = error.code === 'unreachable' && this.failure === null && !this.stop.signal.aborted;
        if (!isPatient || this.clock.monotonicMs() >= untilMs) {
          this.note(error);
          throw error;
        }
        await pause(this.clock, RETRY_MS, this.stop.signal);
      }
    }
  }

  /** Looks for a server that is away until it is back, so that readiness is right also where nobody asks for anything. */
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
 * A connection whose failures are `StoreError`s, and which is replaced where it turns out to be broken before anything
 * depends on it; so may be the next one, and all that were open when the server went.
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

/** What may be said twice. */
const HARMLESS = /^\s*(select|begin|start transaction)\b/i;
