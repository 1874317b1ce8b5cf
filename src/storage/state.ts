import { type AccountStore, SqlAccountStore } from './account-store.js';
import { type CursorStore, SqlCursorStore } from './cursor-store.js';
import type { DatabaseTraits } from './database-traits.js';
import type { ExecutionStore } from './execution-store.js';
import type { Fence } from './fence.js';
import type { InvocationStore } from './invocation-store.js';
import { JournalStore } from './journal-store.js';
import { type LeaseStore, SqlLeaseStore } from './lease-store.js';
import { type PullStore, SqlPullStore } from './pull-store.js';
import { type RetentionStore, SqlRetentionStore } from './retention-store.js';
import { type RowStore, SqlRowStore } from './row-store.js';
import { type JobCatalog, type RunCatalog, type ScopeCatalog, SqlRunCatalog } from './run-catalog.js';
import { type RunMeasuresStore, type RunStore, SqlRunMeasuresStore, SqlRunStore } from './run-store.js';
import { type ScopeStore, SqlScopeStore } from './scope-store.js';
import type { RunObserver } from './settle-runs.js';
import { SqlExecutionStore } from './sql-execution-store.js';
import { SqlInvocationStore } from './sql-invocation-store.js';
import type { StateDb } from './state-tables.js';
import { SqlTokenStore, type TokenStore } from './token-store.js';
import { SqlTraceCatalog, type TraceCatalog } from './trace-catalog.js';

/** The program's state beside the record logs: one store per subject, all on one connection to an SQL database, whichever it is. */
export class State {
  readonly runs: RunStore;
  readonly measures: RunMeasuresStore;
  readonly cursors: CursorStore;
  readonly executions: ExecutionStore;
  readonly invocations: InvocationStore;
  readonly places: ScopeStore;
  /** Runs, steps, jobs, projects and environments as the API shows them. */
  readonly catalog: RunCatalog & JobCatalog & ScopeCatalog;
  readonly leases: LeaseStore;
  readonly traces: TraceCatalog;
  readonly retention: RetentionStore;
  readonly rows: RowStore;
  readonly pulls: PullStore;
  readonly accounts: AccountStore;
  readonly tokens: TokenStore;
  /** For several processes on one database. */
  readonly journal: JournalStore;

  /**
   * @param db whose schema is up to date; features that keep tables of their own use it too
   * @param observer is notified of changes of runs; features that change runs call it
   * @param fence where several processes share the database: which one this is
   */
  constructor(
    readonly db: StateDb,
    private readonly database: DatabaseTraits,
    readonly observer: RunObserver,
    readonly fence?: Fence,
  ) {
    this.runs = new SqlRunStore(db, fence);
    this.measures = new SqlRunMeasuresStore(db, database);
    this.cursors = new SqlCursorStore(db, fence);
    this.executions = new SqlExecutionStore(db, observer);
    this.invocations = new SqlInvocationStore(db, observer, fence);
    this.places = new SqlScopeStore(db);
    this.catalog = new SqlRunCatalog(db);
    this.leases = new SqlLeaseStore(db);
    this.pulls = new SqlPullStore(db, database.sync);
    this.retention = new SqlRetentionStore(db, database);
    this.rows = new SqlRowStore(db);
    this.traces = new SqlTraceCatalog(db);
    this.accounts = new SqlAccountStore(db);
    this.tokens = new SqlTokenStore(db);
    this.journal = new JournalStore(db, database);
  }

  /** Why the database cannot be used at the moment, in a sentence; `null` while it can. */
  problem(): string | null {
    return this.database.problem();
  }

  /** Lets go of the database; nothing may be called afterwards. */
  async close(): Promise<void> {
    await this.db.destroy();
  }
}
