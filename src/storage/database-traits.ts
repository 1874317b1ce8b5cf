import type { RawBuilder } from 'kysely';

/** What databases differ in. */
export interface DatabaseTraits {
  /** Makes what was written last a power cut as well, where a commit alone does not. */
  readonly sync: () => Promise<void>;
  /** See `State.problem`. */
  readonly problem: () => string | null;
  /** The database's own clock, in milliseconds since 1970. */
  readonly nowUnixMs: RawBuilder<number>;
  /** Whether rows can be locked for a transaction's time; where not, one transaction writes at a time. */
  readonly hasRowLocks: boolean;
}
