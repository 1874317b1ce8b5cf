import type { Kysely } from 'kysely';
import type { PermissionSet } from './permission-set.js';

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
  /** The last id given of each kind of numbered thing. */
  readonly last_ids: {
    readonly kind: 'execution' | 'token';
    readonly last_id: number;
  };
  /** Runs as executions of a job; `runs` are the traces. */
  readonly executions: {
    readonly id: number;
    readonly run_key: string | null;
    readonly job: string;
    readonly environment: string | null;
    readonly project: string | null;
    readonly reason: string | null;
    readonly state: 'open' | 'closing' | 'finished';
    readonly started_unix_ms: number;
    readonly ended_unix_ms: number | null;
    readonly step_count: number;
  };
  readonly execution_steps: {
    readonly step_id: string;
    readonly execution_id: number;
    readonly step_index: number;
    /** A JSON array of texts. */
    readonly command: string;
    readonly teller: 'local' | 'remote';
    /** 0 or 1: SQLite has no booleans. */
    readonly is_last: number;
    readonly started_unix_ms: number;
    readonly ended_unix_ms: number | null;
    readonly ending: 'exited' | 'killed' | 'notStarted' | 'unknown' | null;
    readonly exit_code: number | null;
    /** The signal, or the reason why it was not started. */
    readonly ending_detail: string | null;
  };
  /** Which traces hold records of which steps. */
  readonly step_traces: {
    readonly trace_id: string;
    readonly step_id: string;
  };
  /** Runs of a hosted platform; ids are texts of digits. */
  readonly hosted_runs: {
    readonly platform: string;
    readonly account_id: string;
    readonly run_id: string;
    readonly state: 'waiting' | 'done' | 'failed';
    readonly noted_unix_ms: number;
    readonly due_unix_ms: number;
    readonly attempt_count: number;
    /** Numbers with commas between them. */
    readonly done_steps: string;
  };
  readonly watch_cursors: {
    readonly platform: string;
    readonly account_id: string;
    /** Empty for all jobs. */
    readonly job_id: string;
    readonly created_unix_ms: number;
  };
  readonly accounts: {
    readonly id: number;
    readonly name: string;
    /** 0 for the account that has always been there. */
    readonly created_unix_ms: number;
  };
  readonly tokens: {
    readonly id: number;
    readonly account_id: number;
    readonly name: string;
    /** Whose it is; none for a service token. */
    readonly user_name: string | null;
    readonly permission: PermissionSet;
    /** SHA-256 in lowercase hex. */
    readonly hash: string;
    readonly created_unix_ms: number;
    readonly expires_unix_ms: number | null;
    readonly revoked_unix_ms: number | null;
    readonly used_unix_ms: number | null;
  };
}

/** A connection to the state. */
export type StateDb = Kysely<StateTables>;
