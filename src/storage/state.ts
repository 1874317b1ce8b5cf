import { AccountStore, TokenStore } from './account-store.js';
import { type CursorStore, SqlCursorStore } from './cursor-store.js';
import type { DatabaseTraits } from './database.js';
import type { RunObserver } from './execution-status.js';
import { ExecutionStore } from './execution-store.js';
import { InvocationStore } from './invocation-store.js';
import { type Fence, JournalStore } from './journal-store.js';
import { LeaseStore } from './lease-store.js';
import { RetentionStore } from './retention-store.js';
import { RowStore } from './row-store.js';
import { RunCatalog } from './run-catalog.js';
import { RunMeasuresStore, type RunStore, SqlRunStore } from './run-store.js';
import { RunTotalsStore } from './run-totals.js';
import { ScopeStore } from './scope-store.js';
import type { StateDb } from './state-tables.js';
import { TraceCatalog } from './trace-catalog.js';

/** The program's state beside the record logs: one store per subject, all on one connection to an SQL database, whichever it is. */
export class State {
  readonly runs: RunStore;
  readonly measures: RunMeasuresStore;
  readonly cursors: CursorStore;
  readonly executions: ExecutionStore;
  readonly invocations: InvocationStore;
  readonly scopes: ScopeStore;
  /** Runs, steps, jobs, projects and environments as the API shows them. */
  readonly catalog: RunCatalog;
  readonly leases: LeaseStore;
  readonly traces: TraceCatalog;
  readonly runTotals: RunTotalsStore;
  readonly retention: RetentionStore;
  readonly rows: RowStore;
  readonly accounts: AccountStore;
  readonly tokens: TokenStore;
  /** For several processes on one database. */
  readonly journal: JournalStore;

  /**
   * @param db whose schema is up to date; features that have further tables use it too
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
    this.measures = new RunMeasuresStore(db, database);
    this.cursors = new SqlCursorStore(db, fence);
    this.executions = new ExecutionStore(db, observer);
    this.invocations = new InvocationStore(db, observer, fence);
    this.scopes = new ScopeStore(db);
    this.catalog = new RunCatalog(db);
    this.leases = new LeaseStore(db);
    this.runTotals = new RunTotalsStore(db);
    this.retention = new RetentionStore(db, database);
    this.rows = new RowStore(db);
    this.traces = new TraceCatalog(db);
    this.accounts = new AccountStore(db);
    this.tokens = new TokenStore(db);
    this.journal = new JournalStore(db, database);
  }

  /** Returns why the database cannot be used at the moment, in a sentence; `null` while it can. */
  problem(): string | null {
    return this.database.problem();
  }

  /** Makes what was written last a power cut as well, where a commit alone does not. */
  sync(): Promise<void> {
    return this.database.sync();
  }

  /** Closes the database; nothing may be called afterwards. */
  async close(): Promise<void> {
    await this.db.destroy();
  }
}
