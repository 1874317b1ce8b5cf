import { CompiledQuery, type Kysely, type Migration, Migrator, sql } from 'kysely';
import { StoreError } from './store-error.js';

/** Steps of a schema by their names, whose alphabetical order is that of the steps. */
export type SchemaSteps = Readonly<Record<string, Migration>>;

/**
 * The state's tables as SQLite and PostgreSQL take them alike; `StateTables` has their types. Times are milliseconds, offsets bytes,
 * ids lowercase hexadecimal, texts of several parts JSON.
 */
const FIRST_SCHEMA: readonly string[] = [
  // Traces: how much their record logs hold, and how far they were summarised and written as Parquet.
  `create table runs (
    trace_id text primary key,
    first_seen_unix_ms bigint not null,
    last_seen_unix_ms bigint not null,
    state text not null,
    log_bytes bigint not null,
    summary text not null,
    parquet_bytes bigint,
    is_noted integer not null default 0
  )`,
  // Covers what is read of a run to list what is pending, so that its summary is never touched.
  // What was measured of a finished trace, and the summary in `runs` that it belongs to.
  `create table run_measures (
    trace_id text primary key,
    summary text not null,
    content bytea not null
  )`,
  `create index runs_by_first_seen on runs (first_seen_unix_ms, trace_id, log_bytes)`,
  `create index runs_unfinished on runs (first_seen_unix_ms) where state = 'open' or parquet_bytes is null or parquet_bytes <> log_bytes`,
  `create index runs_unnoted on runs (first_seen_unix_ms) where is_noted = 0`,
  // Destinations of exports, and how far each got with telemetry of other services.
  `create table destinations (
    name text primary key,
    since_unix_ms bigint not null,
    foreign_segment text,
    foreign_offset bigint
  )`,
  // How far a destination got with a trace.
  `create table export_cursors (
    destination text not null,
    trace_id text not null,
    traces_offset bigint not null,
    logs_offset bigint not null,
    finished_at_bytes bigint,
    primary key (destination, trace_id)
  )`,
  // The last number given of each kind.
  `create table last_ids (
    kind text primary key,
    last_id bigint not null
  )`,
  // Accounts, of which there is one from the beginning, and the tokens that act for them.
  `create table accounts (
    id bigint primary key,
    name text not null,
    created_unix_ms bigint not null
  )`,
  `create table tokens (
    id bigint primary key,
    account_id bigint not null,
    name text not null,
    user_name text,
    permission text not null,
    hash text not null unique,
    created_unix_ms bigint not null,
    expires_unix_ms bigint,
    revoked_unix_ms bigint,
    used_unix_ms bigint
  )`,
  // Projects, environments and jobs by name; runs belong to one of each.
  `create table projects (
    id bigint primary key,
    account_id bigint not null,
    name text not null,
    created_unix_ms bigint not null,
    updated_unix_ms bigint not null,
    unique (account_id, name)
  )`,
  `create table environments (
    id bigint primary key,
    account_id bigint not null,
    name text not null,
    created_unix_ms bigint not null,
    updated_unix_ms bigint not null,
    project_id bigint not null,
    unique (account_id, name)
  )`,
  `create table jobs (
    id bigint primary key,
    account_id bigint not null,
    name text not null,
    created_unix_ms bigint not null,
    updated_unix_ms bigint not null,
    project_id bigint not null,
    environment_id bigint not null,
    unique (account_id, name)
  )`,
  // Runs of jobs, with the steps of each and the traces of those.
  `create table executions (
    id bigint primary key,
    run_key text,
    job text not null,
    environment text,
    project text,
    reason text,
    state text not null,
    started_unix_ms bigint not null,
    ended_unix_ms bigint,
    step_count integer not null,
    account_id bigint not null,
    project_id bigint not null,
    environment_id bigint not null,
    job_id bigint not null,
    created_unix_ms bigint not null,
    updated_unix_ms bigint not null,
    status integer not null,
    finished_unix_ms bigint not null,
    seen_unix_ms bigint,
    cancelled_unix_ms bigint,
    status_message text,
    engine_version text,
    git_branch text,
    git_sha text,
    notified integer not null,
    artifacts_removed_unix_ms bigint,
    rows_revision integer not null default 1,
    kept_revision integer not null default 0
  )`,
  `create index executions_by_created on executions (account_id, created_unix_ms, id, status, job_id, environment_id, project_id, finished_unix_ms, engine_version)`,
  `create index executions_by_end on executions (finished_unix_ms, id) where status >= 10`,
  // PostgreSQL reads the whole table for a list without a matching index.
  `create index executions_by_environment_id on executions (account_id, environment_id, id)`,
  `create index executions_by_finished on executions (account_id, finished_unix_ms, id, status, job_id, environment_id, project_id, created_unix_ms, engine_version)`,
  // Contains all filtered columns: rows are counted and paged without reading them.
  `create index executions_by_id on executions (account_id, id, status, job_id, environment_id, project_id, created_unix_ms, finished_unix_ms, engine_version)`,
  `create index executions_by_job_id on executions (account_id, job_id, id)`,
  `create index executions_by_key on executions (run_key, id)`,
  `create index executions_by_project_id on executions (account_id, project_id, id)`,
  `create index executions_by_status on executions (account_id, status, id)`,
  // A run's name may be given again once the run takes no more steps.
  `create unique index executions_open_by_key on executions (run_key, account_id) where state = 'open' and run_key is not null`,
  `create index executions_unkept on executions (id) where status >= 10 and rows_revision <> kept_revision`,
  `create index executions_unsettled on executions (id) where state = 'finished' and status < 10`,
  `create index executions_with_artifacts on executions (finished_unix_ms, id) where status >= 10 and artifacts_removed_unix_ms is null`,
  `create table execution_steps (
    step_id text primary key,
    execution_id bigint not null,
    step_index integer not null,
    command text not null,
    reporter text not null,
    is_last integer not null,
    started_unix_ms bigint not null,
    ended_unix_ms bigint,
    ending text,
    exit_code integer,
    ending_detail text,
    id bigint not null,
    updated_unix_ms bigint not null,
    status integer not null,
    status_message text,
    seen_unix_ms bigint,
    heard_unix_ms bigint,
    unique (execution_id, step_index)
  )`,
  `create unique index execution_steps_by_id on execution_steps (id)`,
  `create index execution_steps_running on execution_steps (execution_id) where ending is null`,
  `create table step_traces (
    trace_id text not null,
    step_id text not null,
    primary key (trace_id, step_id)
  )`,
  `create index step_traces_by_step on step_traces (step_id)`,
  // Engine commands as their traces have them.
  `create table invocations (
    trace_id text not null,
    invocation_index integer not null,
    step_id text not null,
    command text,
    verdict text,
    status_message text,
    started_unix_ms bigint not null,
    ended_unix_ms bigint not null,
    is_saved integer not null,
    parquet_file text not null,
    primary key (trace_id, invocation_index)
  )`,
  `create index invocations_by_step on invocations (step_id)`,
  // Output of commands, and expected artifacts of steps: those being uploaded, and those that never arrived.
  `create table step_outputs (
    step_id text primary key,
    output text not null,
    dropped_bytes bigint not null
  )`,
  `create table step_artifacts (
    step_id text primary key,
    state text not null,
    expected_count integer not null,
    missing_count integer not null,
    paths text not null,
    reason text
  )`,
  // Runs that were started over the API.
  `create table job_runs (
    run_id bigint primary key,
    state text not null,
    first_command integer not null,
    commands_digest text not null,
    stopped_at integer,
    failure text,
    pid bigint,
    process_id text,
    retried_run_id bigint
  )`,
  `create index job_runs_not_ended on job_runs (run_id) where state <> 'ended'`,
  // Runs of a hosted platform to pull, and the progress of each watch.
  `create table hosted_runs (
    platform text not null,
    account_id text not null,
    run_id text not null,
    state text not null,
    noted_unix_ms bigint not null,
    due_unix_ms bigint not null,
    attempt_count integer not null,
    done_steps text not null,
    primary key (platform, account_id, run_id)
  )`,
  `create index hosted_runs_waiting on hosted_runs (platform, due_unix_ms) where state = 'waiting'`,
  `create table watch_cursors (
    platform text not null,
    account_id text not null,
    job_id text not null,
    created_unix_ms bigint not null,
    primary key (platform, account_id, job_id)
  )`,
  // Leases: the holder and expiry of each.
  `create table leases (
    name text primary key,
    holder text not null,
    expires_unix_ms bigint not null,
    generation bigint not null
  )`,
  // What is being removed, so that a start ends what a crash left half done.
  `create table removals (
    kind text not null,
    id text not null,
    noted_unix_ms bigint not null,
    primary key (kind, id)
  )`,
  // Webhook subscriptions, the outbox of their events, and the result of each attempt.
  `create table webhook_subscriptions (
    id text primary key,
    account_id bigint not null,
    kind text not null,
    name text not null,
    description text not null,
    sealed_url text not null,
    event_types text not null,
    job_ids text not null,
    filter text not null,
    has_run_details integer not null,
    is_per_owner integer not null,
    holds_repeats integer not null,
    state text not null,
    archive_reason text,
    has_authorization integer not null,
    has_standard_headers integer not null,
    max_per_minute integer,
    sealed_secret text not null,
    sealed_old_secret text,
    old_secret_until_unix_ms bigint,
    sealed_headers text,
    signature_header text not null,
    sealed_template text,
    sealed_routing_key text,
    notify_on_archive text,
    expect_ms bigint,
    created_unix_ms bigint not null,
    updated_unix_ms bigint not null,
    dispatched_unix_ms bigint,
    http_status_code integer not null,
    last_error text,
    failed_count integer not null,
    failing_since_unix_ms bigint,
    paused_until_unix_ms bigint not null,
    next_slot_unix_ms bigint not null,
    url_version integer not null,
    shown_url text not null
  )`,
  `create index webhook_subscriptions_by_account on webhook_subscriptions (account_id, created_unix_ms, id)`,
  `create index webhook_subscriptions_by_standing on webhook_subscriptions (failed_count, dispatched_unix_ms)`,
  `create table webhook_events (
    seq bigint primary key,
    id text not null unique,
    subscription_id text not null,
    job_id bigint not null,
    run_id bigint not null,
    event_type text not null,
    facts text not null,
    created_unix_ms bigint not null,
    state text not null,
    filtered_reason text,
    is_tried integer not null,
    is_forced integer not null,
    round_count integer not null,
    attempt_count integer not null,
    due_unix_ms bigint not null,
    lease_until_unix_ms bigint not null,
    lease_holder text,
    http_status_code integer
  )`,
  `create index webhook_events_by_age on webhook_events (created_unix_ms)`,
  `create index webhook_events_by_subscription on webhook_events (subscription_id, seq)`,
  `create index webhook_events_pending on webhook_events (subscription_id, due_unix_ms, seq) where state = 'pending'`,
  `create index webhook_events_untried on webhook_events (subscription_id, job_id, seq) where state = 'pending' and is_tried = 0`,
  `create table webhook_attempts (
    event_id text not null,
    attempt_index integer not null,
    subscription_id text not null,
    started_unix_ms bigint not null,
    duration_ms integer not null,
    http_status_code integer,
    error text,
    request_headers text not null,
    request_body text not null,
    response_headers text not null,
    response_body text not null,
    resent_after text,
    primary key (event_id, attempt_index)
  )`,
  `create index webhook_attempts_by_age on webhook_attempts (started_unix_ms)`,
  `create index webhook_attempts_by_subscription on webhook_attempts (subscription_id)`,
  // What processes share that have a journal in common: who has which partition of it, traces, and their files in the bucket.
  `create table journal_partitions (
    partition_index integer primary key,
    generation bigint not null,
    process_id text not null
  )`,
  `create table journal_traces (
    trace_id text primary key,
    partition_index integer not null,
    is_open integer not null,
    step_version bigint not null default 0
  )`,
  `create index journal_traces_open on journal_traces (partition_index) where is_open = 1`,
  `create table journal_files (
    trace_id text not null,
    name text not null,
    object_key text not null,
    size_bytes bigint not null,
    primary key (trace_id, name)
  )`,
  // The schema reads no clock: 0 means that the account has always existed.
  `insert into accounts (id, name, created_unix_ms) values (10001, 'run-bridge', 0)`,
  `insert into last_ids (kind, last_id) values ('execution', 1000), ('token', 1000), ('project', 2000), ('environment', 3000), ('job', 4000), ('step', 50000), ('webhook', 0)`,
];

/** What went wrong in commands that were measured, by which runs are searched; `redacted_text` is the same without literals. */
const COMMAND_ERRORS: readonly string[] = [
  `create table command_errors (
    trace_id text not null,
    command_index integer not null,
    error_text text not null,
    redacted_text text not null,
    primary key (trace_id, command_index)
  )`,
];

/** Events of a run: its page lists their deliveries, and they go with it. */
const EVENTS_BY_RUN: readonly string[] = [`create index webhook_events_by_run on webhook_events (run_id, seq)`];

/** Runs of a job by their start: which was the last one before another. */
const RUNS_BY_START: readonly string[] = [
  `create index executions_by_job_start on executions (account_id, job_id, created_unix_ms, id)`,
];

/** Steps that were asked for in place of the job's commands, as lines. */
const STEPS_OF_RUNS: readonly string[] = [`alter table job_runs add column steps_override text`];

/** When a run was last asked for again at a destination. */
const RESENT: readonly string[] = [`alter table export_cursors add column resent_unix_ms bigint`];

/** Runs whose rows are gone, by job, result and duration: metrics still count them. */
const REMOVED_RUN_TOTALS: readonly string[] = [
  `create table removed_run_totals (
    account_id bigint not null,
    project_id bigint not null,
    environment_id bigint not null,
    job_id bigint not null,
    status integer not null,
    bound_seconds integer not null,
    run_count bigint not null,
    duration_ms bigint not null,
    started_unix_ms bigint not null,
    finished_unix_ms bigint not null,
    primary key (account_id, project_id, environment_id, job_id, status, bound_seconds)
  )`,
];

/** Every step of the state's schema, oldest first. A step that was released is never changed; a new one is added after it. */
export const SCHEMA_STEPS: SchemaSteps = {
  '0001-first-schema': { up: (db) => runAll(db, FIRST_SCHEMA) },
  '0002-command-errors': { up: (db) => runAll(db, COMMAND_ERRORS) },
  '0003-webhook-events-by-run': { up: (db) => runAll(db, EVENTS_BY_RUN) },
  '0004-runs-by-start': { up: (db) => runAll(db, RUNS_BY_START) },
  '0005-steps-of-runs': { up: (db) => runAll(db, STEPS_OF_RUNS) },
  '0006-resent': { up: (db) => runAll(db, RESENT) },
  '0007-removed-run-totals': { up: (db) => runAll(db, REMOVED_RUN_TOTALS) },
};

async function runAll(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await db.executeQuery(CompiledQuery.raw(statement));
}

/** The database to migrate, and the target. */
export interface SchemaChange {
  /** The database, for messages. */
  readonly where: string;
  /** Which of its namespaces the tables are in, where it has several. */
  readonly schema?: string | undefined;
  /** Default: all that this program knows. */
  readonly steps?: SchemaSteps | undefined;
}

/**
 * Migrates the state's schema to this version, under a lock: concurrent migrations wait.
 * All missing steps are one transaction: if the process is killed, the next start finds the previous schema.
 * @param db with a dialect of transactional schema changes
 * @throws StoreError `newer` if a later version was used, `unavailable` if a step fails.
 */
export async function migrateToLatest<Tables>(db: Kysely<Tables>, change: SchemaChange): Promise<void> {
  const { where, schema, steps = SCHEMA_STEPS } = change;
  await refuseNewer(db, change);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...steps }) },
    // Steps are identified by their names. By the time they were applied, a clock that was set back would stop every start.
    allowUnorderedMigrations: true,
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  // A newer program may have migrated while this one waited for the lock.
  await refuseNewer(db, change);
  if (error instanceof StoreError) throw error;
  const failed = results?.find((result) => result.status === 'Error')?.migrationName ?? 'unknown';
  throw new StoreError('unavailable', `${where}: the schema step ${failed} failed; nothing was changed`, {
    cause: error,
  });
}

async function refuseNewer<Tables>(
  db: Kysely<Tables>,
  { where, schema, steps = SCHEMA_STEPS }: SchemaChange,
): Promise<void> {
  const tables = (await db.introspection.getTables({ withInternalKyselyTables: true })).filter(
    (table) => schema === undefined || table.schema === schema,
  );
  if (!tables.some((table) => table.name === 'kysely_migration')) return;
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const unknown = rows.filter((row) => !Object.hasOwn(steps, row.name)).map((row) => row.name);
  if (unknown.length === 0) return;
  throw new StoreError(
    'newer',
    `${where}: written by a newer version of run-bridge (schema step ${unknown.join(', ')}); install that version or pass another --data-dir`,
  );
}
