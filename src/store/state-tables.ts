import type { Kysely } from 'kysely';

/** The tables of state.db, as Kysely's types. Times are milliseconds, offsets bytes, ids lowercase hex. */
export interface StateTables {
  readonly runs: {
    readonly trace_id: string;
    readonly first_seen_unix_ms: number;
    readonly last_seen_unix_ms: number;
    readonly state: 'open' | 'finished';
    readonly log_bytes: number;
    readonly summary: string;
    readonly parquet_bytes: number | null;
  };
  readonly destinations: {
    readonly name: string;
    /** The destination gets runs first seen from this time on. */
    readonly since_unix_ms: number;
    readonly foreign_segment: string | null;
    readonly foreign_offset: number | null;
  };
  readonly export_cursors: {
    readonly destination: string;
    readonly trace_id: string;
    readonly traces_offset: number;
    readonly logs_offset: number;
    readonly finished_at_bytes: number | null;
  };
}

/** A connection to the state. */
export type StateDb = Kysely<StateTables>;
