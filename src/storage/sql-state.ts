import { type AccountStore, SqlAccountStore } from './account-store.js';
import type { ClusterStores } from './cluster/cluster-stores.js';
import { SqlJournalStore } from './cluster/sql-journal-store.js';
import { SqlMemberStore } from './cluster/sql-member-store.js';
import { SqlSharedTraceStore } from './cluster/sql-shared-trace-store.js';
import { type CursorStore, SqlCursorStore } from './cursor-store.js';
import type { DatabaseTraits } from './database-traits.js';
import type { ExecutionStore } from './execution-store.js';
import type { Fence } from './fence.js';
import type { InvocationStore } from './invocation-store.js';
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
import type { State } from './state.js';
import type { StateDb } from './state-tables.js';
import { SqlTokenStore, type TokenStore } from './token-store.js';
import { SqlTraceCatalog, type TraceCatalog } from './trace-catalog.js';

/** Every store on one connection to an SQL database, whichever it is: a store that is added here is there on each. */
export class SqlState implements State {
  readonly runs: RunStore;
  readonly measures: RunMeasuresStore;
  readonly cursors: CursorStore;
  readonly executions: ExecutionStore;
  readonly invocations: InvocationStore;
  readonly places: ScopeStore;
  readonly catalog: RunCatalog & JobCatalog & ScopeCatalog;
  readonly leases: LeaseStore;
  readonly traces: TraceCatalog;
  readonly retention: RetentionStore;
  readonly rows: RowStore;
  readonly pulls: PullStore;
  readonly accounts: AccountStore;
  readonly tokens: TokenStore;
  readonly cluster: ClusterStores;

  /** @param db whose schema is up to date. @param fence where several processes share the database: which one this is */
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
    this.cluster = {
      members: new SqlMemberStore(db, database),
      journal: new SqlJournalStore(db, database),
      traces: new SqlSharedTraceStore(db, database),
    };
  }

  problem(): string | null {
    return this.database.problem();
  }

  async close(): Promise<void> {
    await this.db.destroy();
  }
}
