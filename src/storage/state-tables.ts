import type { Generated, Kysely } from 'kysely';

/** Returns a run's id as written in paths; `undefined` if invalid. */
export function parseRunNumber(value: unknown): number | undefined {
  return typeof value === 'string' && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : undefined;
}

/** Where a run or a step stands, by the hosted platform's numbers. */
export const RUN_STATUS = {
  queued: 1,
  /** A command was started, and no record of it has come. */
  starting: 2,
  running: 3,
  success: 10,
  error: 20,
  cancelled: 30,
} as const;

/** One of `RUN_STATUS`. Those from 10 on are final: everything of the run can be read. */
export type RunStatus = (typeof RUN_STATUS)[keyof typeof RUN_STATUS];

/** The names of statuses. */
export const STATUS_NAMES = {
  ...{ 1: 'queued', 2: 'starting', 3: 'running' },
  ...{ 10: 'success', 20: 'error', 30: 'cancelled' },
} as const satisfies Readonly<Record<RunStatus, keyof typeof RUN_STATUS>>;

/** Returns a status as the hosted platform's API spells it: `Success`. */
export function platformStatusWord(status: RunStatus): string {
  const name = STATUS_NAMES[status];
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

/** A status, and why it is that, in words. */
export interface StatusWithReason {
  readonly status: RunStatus;
  readonly statusMessage: string | null;
}

/** Returns whether a run or step is over, and its artifacts can be read. */
export function isFinal(status: RunStatus): boolean {
  return status >= RUN_STATUS.success;
}

/** The tables of state.db, as Kysely's types. Times are milliseconds, offsets bytes, ids lowercase hex. */
export interface StateTables extends JournalTables {
  readonly runs: {
    readonly trace_id: string;
    readonly first_seen_unix_ms: number;
    readonly last_seen_unix_ms: number;
    readonly state: 'open' | 'finished';
    readonly log_bytes: number;
    readonly summary: string;
    readonly parquet_bytes: number | null;
    /** 1 once its invocations are rows of `invocations`, 2 where they can never be. */
    readonly is_noted: Generated<number>;
  };
  readonly run_measures: {
    readonly trace_id: string;
    /** `runs.summary` when the trace was measured; with another one there, the row is out of date. */
    readonly summary: string;
    readonly content: Uint8Array;
  };
  readonly command_errors: {
    readonly trace_id: string;
    readonly command_index: number;
    readonly error_text: string;
    readonly redacted_text: string;
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
    readonly resent_unix_ms: number | null;
  };
  /** The last id given of each kind of numbered thing. */
  readonly last_ids: {
    readonly kind: 'execution' | 'token' | 'step' | 'project' | 'environment' | 'job' | 'webhook';
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
    readonly account_id: number;
    readonly project_id: number;
    readonly environment_id: number;
    readonly job_id: number;
    readonly created_unix_ms: number;
    readonly updated_unix_ms: number;
    /** When the first of its engine commands began. */
    readonly seen_unix_ms: number | null;
    /** `NOT_FINISHED` until its status is final. */
    readonly finished_unix_ms: number;
    readonly cancelled_unix_ms: number | null;
    readonly status: RunStatus;
    readonly status_message: string | null;
    readonly engine_version: string | null;
    readonly git_branch: string | null;
    readonly git_sha: string | null;
    /** `null` while its artifacts, if any, can be downloaded. */
    readonly artifacts_removed_unix_ms: number | null;
    /** The events created for it: 1 started, 2 errored, 4 completed; their sum. */
    readonly notified: number;
    /** Counts changes of its API-visible data; and the count up to which its rows are backed up to a file. */
    readonly rows_revision: Generated<number>;
    readonly kept_revision: Generated<number>;
  };
  readonly projects: NamedColumns;
  readonly environments: NamedColumns & { readonly project_id: number };
  /** The project and environment are those of its first run. */
  readonly jobs: NamedColumns & { readonly project_id: number; readonly environment_id: number };
  readonly execution_steps: {
    /** For the API. */
    readonly id: number;
    readonly step_id: string;
    readonly execution_id: number;
    readonly step_index: number;
    /** A JSON array of texts. */
    readonly command: string;
    /** `nobody`: known only from its telemetry. */
    readonly reporter: 'local' | 'remote' | 'nobody';
    /** 0 or 1: SQLite has no booleans. */
    readonly is_last: number;
    readonly started_unix_ms: number;
    readonly ended_unix_ms: number | null;
    readonly ending: 'exited' | 'killed' | 'notStarted' | 'within' | 'unknown' | null;
    readonly exit_code: number | null;
    /** The signal, or the reason why it was not started. */
    readonly ending_detail: string | null;
    readonly updated_unix_ms: number;
    /** When the first of its engine commands began. */
    readonly seen_unix_ms: number | null;
    readonly status: RunStatus;
    readonly status_message: string | null;
    /** Last sign of life of its reporter, if several processes share the database. */
    readonly heard_unix_ms: Generated<number | null>;
  };
  /** Engine commands, each of the step that it belongs to. */
  readonly invocations: {
    readonly trace_id: string;
    readonly invocation_index: number;
    readonly step_id: string;
    readonly command: string | null;
    readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
    readonly status_message: string | null;
    readonly started_unix_ms: number;
    readonly ended_unix_ms: number;
    /** 0 or 1: whether its Parquet can be read. */
    readonly is_saved: number;
    readonly parquet_file: string;
  };
  /** Runs that were started over the API, beside their rows as executions. */
  readonly job_runs: {
    readonly run_id: number;
    readonly state: 'queued' | 'running' | 'ended';
    /** Positions among the job's commands, from 0. */
    readonly first_command: number;
    readonly commands_digest: string;
    readonly stopped_at: number | null;
    /** Why it failed, if its steps do not contain it. */
    readonly failure: string | null;
    /** Process id of the running command. */
    readonly pid: number | null;
    /** Which of several processes on the database runs it. */
    readonly process_id: Generated<string | null>;
    /** The run that failed and that it starts anew; `null` where it is no retry. */
    readonly retried_run_id: number | null;
    /** Command lines that it runs in place of the job's, as a list in JSON; `null` where it runs the job's. */
    readonly steps_override: string | null;
  };
  /** What the commands of steps wrote. */
  readonly step_outputs: {
    readonly step_id: string;
    readonly output: string;
    readonly dropped_bytes: number;
  };
  /** Artifacts that a step is to have and that cannot all be downloaded (yet); without a row, nothing is missing. */
  readonly step_artifacts: {
    readonly step_id: string;
    /** `expected`: being uploaded, the run does not end before. `missing`: they never arrived. */
    readonly state: 'expected' | 'missing';
    /** All that were announced. */
    readonly expected_count: number;
    /** Those that never arrived; 0 during the upload. */
    readonly missing_count: number;
    /** A JSON array: of all expected ones, or of the missing ones. */
    readonly paths: string;
    /** Why they are missing, in words. */
    readonly reason: string | null;
  };
  /** Which traces hold records of which steps. */
  readonly step_traces: {
    readonly trace_id: string;
    readonly step_id: string;
  };
  /** Files being removed, whose rows are gone; see `Removal`. */
  readonly removals: {
    readonly kind: 'trace' | 'moved' | 'object' | 'run' | 'artifacts';
    readonly id: string;
    readonly noted_unix_ms: number;
  };
  /** How many runs were removed whose rows are gone, by what `RunTotal` counts by. */
  readonly removed_run_totals: {
    readonly account_id: number;
    readonly project_id: number;
    readonly environment_id: number;
    readonly job_id: number;
    readonly status: RunStatus;
    readonly bound_seconds: number;
    readonly run_count: number;
    readonly duration_ms: number;
    /** When the last of them began, and when the last of them ended. */
    readonly started_unix_ms: number;
    readonly finished_unix_ms: number;
  };
  /** What one program at a time may have. */
  readonly leases: {
    readonly name: string;
    readonly holder: string;
    readonly expires_unix_ms: number;
    readonly generation: number;
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

/** `executions.finished_unix_ms` of a run that has not ended: the latest possible date. */
export const NOT_FINISHED = 8_640_000_000_000_000;

/** What projects, environments and jobs have in common; names are unique in their account. */
export interface NamedColumns {
  readonly id: number;
  readonly account_id: number;
  readonly name: string;
  readonly created_unix_ms: number;
  readonly updated_unix_ms: number;
}

/** A connection to the state. */
export type StateDb = Kysely<StateTables>;

/** The tables of processes that share the work by a journal, as Kysely's types. */
export interface JournalTables {
  /** Who has each partition of the journal. */
  readonly journal_partitions: {
    readonly partition_index: number;
    /** Of the group of readers: a process that comes with a lower one has lost the partition. */
    readonly generation: number;
    readonly process_id: string;
  };
  /** Traces, and the partition by which each has its process. */
  readonly journal_traces: {
    readonly trace_id: string;
    readonly partition_index: number;
    /** 0 or 1: whether a process has to look after it. */
    readonly is_open: number;
    readonly step_version: Generated<number>;
  };
  /** Files of traces in the bucket, by their names in a run's folder. */
  readonly journal_files: {
    readonly trace_id: string;
    readonly name: string;
    readonly object_key: string;
    readonly size_bytes: number;
  };
}

/** The permission sets of tokens, by name; `src/api/permissions.ts` lists the rights of each. */
export const PERMISSION_SETS = [
  'account_admin',
  'admin',
  'developer',
  'analyst',
  'webhooks_only',
  'read_only',
] as const;

/** One of `PERMISSION_SETS`. */
export type PermissionSet = (typeof PERMISSION_SETS)[number];

/** @returns `undefined` for an unknown one; accepts names and titles, for example `Account Admin` or `read-only`. */
export function parsePermissionSet(text: string): PermissionSet | undefined {
  const name = text.trim().toLowerCase().replaceAll(/[ -]/g, '_');
  return PERMISSION_SETS.find((one) => one === name);
}
