import type { AccountStore } from './account-store.js';
import type { ClusterStores } from './cluster/cluster-stores.js';
import type { CursorStore } from './cursor-store.js';
import type { ExecutionStore } from './execution-store.js';
import type { Fence } from './fence.js';
import type { InvocationStore } from './invocation-store.js';
import type { LeaseStore } from './lease-store.js';
import type { PullStore } from './pull-store.js';
import type { RetentionStore } from './retention-store.js';
import type { RowStore } from './row-store.js';
import type { JobCatalog, RunCatalog, ScopeCatalog } from './run-catalog.js';
import type { RunMeasuresStore, RunStore } from './run-store.js';
import type { ScopeStore } from './scope-store.js';
import type { RunObserver } from './settle-runs.js';
import type { StateDb } from './state-tables.js';
import type { TokenStore } from './token-store.js';
import type { TraceCatalog } from './trace-catalog.js';

/** The program's state beside the record logs: one store per subject, all in one database. */
export interface State {
  /** The connection, for features that keep tables of their own. */
  readonly db: StateDb;
  /** Is notified of changes of runs; features that change runs call it. */
  readonly observer: RunObserver;
  /** Where several processes share the database: which one this is. */
  readonly fence?: Fence | undefined;
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
  readonly cluster: ClusterStores;
  /** Why the database cannot be used at the moment, in a sentence; `null` while it can. */
  problem(): string | null;
  /** Lets go of the database; nothing may be called afterwards. */
  close(): Promise<void>;
}
