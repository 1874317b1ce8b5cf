import type { Transaction } from 'kysely';
import type { Clock } from '../../component/clock.js';
import type { StateTables } from '../state-tables.js';

/** Makes events of what became of runs, in the transaction that changes them: neither is there without the other. */
export interface RunAnnouncer {
  /** Looks at runs that may have changed. What was told of a run is not told again. */
  announce(transaction: Transaction<StateTables>, runIds: readonly number[]): Promise<void>;
}

/** How events come to be. */
export interface Announcing {
  readonly clock: Clock;
  /** Unique text of 27 letters and digits. */
  readonly newKsuid: (nowUnixMs: number) => string;
  /** Runs become known, and are no news: what an import brings. */
  readonly isSilent: boolean;
  /** Is called when events are about to be there, before they are committed. */
  readonly onEvents: () => void;
}
