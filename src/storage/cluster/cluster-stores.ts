import type { JournalStore } from './journal-store.js';
import type { MemberStore } from './member-store.js';
import type { SharedTraceStore } from './shared-trace-store.js';

/** The shared state of several processes on one database. */
export interface ClusterStores {
  readonly members: MemberStore;
  readonly journal: JournalStore;
  readonly traces: SharedTraceStore;
}
