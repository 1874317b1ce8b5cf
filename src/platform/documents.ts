import humanizeDuration from 'humanize-duration';
import { z } from 'zod';
import { type Redactor, statusText } from '../redaction/redactor.js';
import type { AccountRow } from '../storage/account-store.js';
import type { CatalogRun, CatalogStep } from '../storage/run-catalog.js';
import type { CatalogEnvironment, CatalogJob, CatalogProject } from '../storage/scope-catalog.js';
import { isFinal, platformStatusWord, RUN_STATUS, type RunStatus, STATUS_NAMES } from '../storage/state-tables.js';

const integer = z.number().int();
const time = z.string().meta({ description: 'like 2021-12-07 10:32:24.326116+00:00' });
const text = z.string();
const flag = z.boolean();
const status = z.literal([1, 2, 3, 10, 20, 30]).meta({
  description: '1 queued, 2 starting, 3 running, 10 success, 20 error, 30 cancelled',
});

/** The state of what exists: what is deleted is not kept. */
const ACTIVE = 1;

/** Fields that the hosted platform's clients read, and that stand for nothing here: plans, seats, repositories, connections and the like. */
function nulls(names: string): Readonly<Record<string, null>> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, null]));
}

/** An account as the platform's API shows it. */
export const accountSchema = z
  .looseObject({ id: integer, name: text, identifier: text, state: integer })
  .meta({ id: 'Account' });

const NULLS_OF_ACCOUNT = nulls(`plan run_slots developer_seats it_seats explorer_seats analyst_seats read_only_seats
  lock_reason lock_cause unlocked_at billing_email_address pod_memory_request_mebibytes
  develop_pod_memory_request_mebibytes run_duration_limit_seconds queue_limit enterprise_login_slug starter_repo_url
  git_auth_level trial_end_date static_subdomain vanity_subdomain run_locked_until docs_job_id freshness_job_id
  copilot_locked_until created_at updated_at`);

/** An account as the platform's API shows it: there are no plans, no seats and no bills. */
export function accountDocument({ id, name }: AccountRow): z.input<typeof accountSchema> {
  return {
    ...NULLS_OF_ACCOUNT,
    ...{ id, name, identifier: String(id), state: ACTIVE },
    ...{ locked: false, pending_cancel: false, business_critical: false, agent_credit_locked: false },
    ...{ account_migration_events: [], groups: [] },
  };
}

/** A step as the platform's API shows it. */
export const stepSchema = z
  .object({
    id: integer,
    run_id: integer,
    account_id: integer,
    index: integer,
    status,
    name: text.meta({ description: 'Invoke dbt with `…`' }),
    logs: text,
    debug_logs: text,
    truncated_debug_logs: text.meta({
      description: 'the last 1,000 lines of debug_logs, whether those are asked for or not',
    }),
    log_path: z.null(),
    debug_log_path: z.null(),
    created_at: time,
    updated_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
    status_color: text,
    status_humanized: text,
    status_message: text.nullable(),
    duration: text,
    duration_humanized: text,
    run_step_command: z.object({ run_step_id: integer, dbt_command: text }),
    run_step_invocation: z.object({ run_step_id: integer, run_id: integer }),
  })
  .meta({ id: 'RunStep' });

/** A project as the platform's API shows it. */
export const projectSchema = z
  .object({
    id: integer,
    account_id: integer,
    name: text,
    description: text,
    state: integer,
    type: integer,
    connection_id: integer.nullable(),
    repository_id: integer.nullable(),
    semantic_layer_config_id: integer.nullable(),
    dbt_project_subdirectory: text.nullable(),
    docs_job_id: integer.nullable(),
    freshness_job_id: integer.nullable(),
    created_at: time,
    updated_at: time,
    connection: z.null(),
    repository: z.null(),
    docs_job: z.null(),
    freshness_job: z.null(),
    fusion_readiness: z.null(),
    default_version: text.nullable(),
    environments: z.array(z.looseObject({ id: integer })).meta({ description: 'environments, if asked for' }),
    group_permissions: z.array(z.unknown()),
  })
  .meta({ id: 'Project' });

/** An environment as the platform's API shows it, versions 2 and 3. */
export const environmentSchema = z
  .object({
    id: integer,
    account_id: integer,
    project_id: integer,
    name: text,
    type: z.literal('deployment'),
    deployment_type: z.enum(['production', 'staging']).nullable().meta({ description: 'by the name' }),
    state: integer,
    dbt_version: text,
    raw_dbt_version: text,
    connection_id: integer.nullable(),
    credentials_id: integer.nullable(),
    repository_id: integer.nullable(),
    extended_attributes_id: integer.nullable(),
    primary_profile_id: integer.nullable(),
    created_by_id: integer.nullable(),
    custom_branch: text.nullable(),
    use_custom_branch: flag,
    dbt_project_subdirectory: text.nullable(),
    supports_docs: flag,
    is_deferrable: flag,
    enable_model_query_history: flag,
    enable_dbt_state: flag,
    created_at: time,
    updated_at: time,
    project: projectSchema.nullable(),
    connection: z.null(),
    credentials: z.null(),
    repository: z.null(),
    fusion_readiness: z.null(),
    jobs: z.array(z.unknown()).nullable().meta({ description: 'an empty list in version 2, null in version 3' }),
    custom_environment_variables: z.array(z.unknown()).nullable(),
  })
  .meta({ id: 'Environment' });

/** A project as the platform's API shows it. Connections and repositories are unknown here. */
export type ProjectDocument = z.input<typeof projectSchema>;

/** @param environments the project's, if they were requested */
export function projectDocument(
  project: CatalogProject,
  environments: ProjectDocument['environments'] = [],
): ProjectDocument {
  return {
    id: project.id,
    account_id: project.accountId,
    name: project.name,
    description: '',
    state: 1,
    type: 0,
    connection_id: null,
    repository_id: null,
    semantic_layer_config_id: null,
    dbt_project_subdirectory: null,
    docs_job_id: null,
    freshness_job_id: null,
    created_at: formatTime(project.createdUnixMs),
    updated_at: formatTime(project.updatedUnixMs),
    connection: null,
    repository: null,
    docs_job: null,
    freshness_job: null,
    fusion_readiness: null,
    default_version: null,
    environments,
    group_permissions: [],
  };
}

/** An environment as the platform's API shows it. */
export type EnvironmentDocument = z.input<typeof environmentSchema>;

/** The hosted platform marks one environment of each kind; here the name says it. */
const DEPLOYMENT_TYPES: Readonly<Record<string, 'production' | 'staging'>> = {
  production: 'production',
  prod: 'production',
  staging: 'staging',
  stage: 'staging',
};
/** The platform's word for an environment without a version of its own. */
const ANY_VERSION = 'latest';

/** @param project the environment's, if it was requested */
export function environmentDocument(
  environment: CatalogEnvironment,
  project: ProjectDocument | null = null,
): EnvironmentDocument {
  const version = environment.engineVersion ?? ANY_VERSION;
  return {
    id: environment.id,
    account_id: environment.accountId,
    project_id: environment.projectId,
    name: environment.name,
    type: 'deployment',
    deployment_type: DEPLOYMENT_TYPES[environment.name.toLowerCase()] ?? null,
    state: 1,
    dbt_version: version,
    raw_dbt_version: version,
    connection_id: null,
    credentials_id: null,
    repository_id: null,
    extended_attributes_id: null,
    primary_profile_id: null,
    created_by_id: null,
    custom_branch: null,
    use_custom_branch: false,
    dbt_project_subdirectory: null,
    supports_docs: false,
    is_deferrable: false,
    enable_model_query_history: false,
    enable_dbt_state: false,
    created_at: formatTime(environment.createdUnixMs),
    updated_at: formatTime(environment.updatedUnixMs),
    project,
    connection: null,
    credentials: null,
    repository: null,
    fusion_readiness: null,
    jobs: null,
    custom_environment_variables: null,
  };
}

/** What environments of version 2 have in place of `null`. Terraform's provider reads no list in those of version 3, nor in those of jobs. */
export const LISTS_OF_VERSION_2 = { jobs: [], custom_environment_variables: [] } as const;

/** A job as the platform's API shows it. */
export const jobSchema = z
  .looseObject({
    id: integer,
    account_id: integer,
    project_id: integer,
    environment_id: integer,
    name: text,
    execute_steps: z.array(text),
    state: integer,
    created_at: time,
    updated_at: time,
    settings: z.object({ threads: integer, target_name: text }),
    execution: z.object({ timeout_seconds: integer }),
    schedule: z.object({
      cron: text,
      date: z.looseObject({ type: text }),
      time: z.looseObject({ type: text }),
    }),
    triggers: z.looseObject({}),
    environment: environmentSchema.nullable(),
    most_recent_run: z.looseObject({ id: integer, status }).nullable().meta({ description: 'a run, if asked for' }),
    most_recent_completed_run: z.looseObject({ id: integer, status }).nullable(),
  })
  .meta({ id: 'Job' });

/** A run as the platform's API shows it. */
export const runSchema = z
  .looseObject({
    id: integer,
    trigger_id: integer,
    account_id: integer,
    environment_id: integer,
    project_id: integer,
    job_definition_id: integer,
    job_id: integer,
    status,
    dbt_version: text,
    git_branch: text.nullable(),
    git_sha: text.nullable(),
    status_message: text.nullable(),
    status_humanized: text,
    href: text,
    created_at: time,
    updated_at: time,
    dequeued_at: time.nullable(),
    started_at: time.nullable(),
    finished_at: time.nullable(),
    created_at_humanized: text,
    finished_at_humanized: text,
    duration: text.meta({ example: '00:01:50' }),
    queued_duration: text,
    run_duration: text,
    duration_humanized: text.meta({ example: '1 minute, 50 seconds' }),
    queued_duration_humanized: text,
    run_duration_humanized: text,
    artifacts_saved: flag,
    has_docs_generated: flag,
    has_sources_generated: flag,
    notifications_sent: flag,
    in_progress: flag,
    is_complete: flag,
    is_success: flag,
    is_error: flag,
    is_cancelled: flag,
    is_running: flag,
    can_retry: flag,
    retry_not_supported_reason: z.enum(['RETRY_NOT_FAILED_RUN', 'RETRY_UNSUPPORTED_CMD']).nullable(),
    used_repo_cache: flag,
    blocked_by: z.array(integer),
    retrying_run_id: integer.nullable(),
    trigger: z
      .looseObject({
        id: integer,
        cause: text,
        cause_category: z.enum(['api', 'rerun']).nullable(),
        steps_override: z.array(text).nullable().meta({ description: "null where it runs the job's own steps" }),
      })
      .nullable(),
    job: jobSchema.extend({ schedule: z.object({ cron: text, date: text, time: text }) }).nullable(),
    environment: environmentSchema.nullable(),
    run_steps: z.array(stepSchema),
  })
  .meta({ id: 'Run' });

/** Objects included in a run; `null`, or an empty list, if not requested. */
export interface RunRelations {
  readonly job: JobDocument | null;
  readonly hasTrigger: boolean;
  readonly environment: EnvironmentDocument | null;
  readonly steps: StepDocument[];
}

/** Inputs of a run's document besides the run. */
export interface RunDocumentContext {
  readonly nowUnixMs: number;
  /** What the caller is shown of texts. */
  readonly redactor: Redactor;
  /** Where browsers reach the pages: `http://127.0.0.1:4380`. */
  readonly pagesUrl: string;
  /** Whether the run's job has commands that can be started from here. */
  readonly isStartable: (run: CatalogRun) => boolean;
}

/** A run as the platform's API shows it. */
export type RunDocument = z.input<typeof runSchema>;

export function runDocument(run: CatalogRun, related: RunRelations, context: RunDocumentContext): RunDocument {
  const { nowUnixMs, pagesUrl, redactor } = context;
  const { status, createdUnixMs, startedUnixMs, finishedUnixMs } = run;
  const endUnixMs = finishedUnixMs ?? nowUnixMs;
  // A command that failed before its first record was running from its start.
  const workUnixMs = startedUnixMs ?? (finishedUnixMs === null ? null : run.dequeuedUnixMs);
  const isOver = isFinal(status);
  const isFailed = isOver && status !== RUN_STATUS.success;
  const isStartable = context.isStartable(run);
  const durations = {
    duration: endUnixMs - createdUnixMs,
    queued_duration: (workUnixMs ?? endUnixMs) - createdUnixMs,
    run_duration: workUnixMs === null ? 0 : endUnixMs - workUnixMs,
  };
  return {
    ...NULLS_OF_RUN,
    id: run.id,
    trigger_id: run.id,
    account_id: run.accountId,
    environment_id: run.environment.id,
    project_id: run.project.id,
    job_definition_id: run.job.id,
    job_id: run.job.id,
    status,
    dbt_version: run.engineVersion ?? '',
    git_branch: run.gitBranch,
    git_sha: run.gitSha,
    status_message: run.statusMessage === null ? null : statusText(run.statusMessage, redactor),
    status_humanized: platformStatusWord(status),
    href: `${pagesUrl}/deploy/${run.accountId}/projects/${run.project.id}/runs/${run.id}`,
    created_at: formatTime(createdUnixMs),
    updated_at: formatTime(run.updatedUnixMs),
    dequeued_at: formatTimeOrNull(run.dequeuedUnixMs),
    started_at: formatTimeOrNull(workUnixMs),
    finished_at: formatTimeOrNull(finishedUnixMs),
    created_at_humanized: humanAge(createdUnixMs, nowUnixMs),
    finished_at_humanized: humanAge(finishedUnixMs, nowUnixMs),
    duration: formatDuration(durations.duration),
    queued_duration: formatDuration(durations.queued_duration),
    run_duration: formatDuration(durations.run_duration),
    duration_humanized: humanDuration(durations.duration),
    queued_duration_humanized: humanDuration(durations.queued_duration),
    run_duration_humanized: humanDuration(durations.run_duration),
    artifacts_saved: isOver && startedUnixMs !== null && run.missingArtifactCount === 0,
    has_docs_generated: false,
    has_sources_generated: false,
    notifications_sent: false,
    in_progress: !isOver,
    is_complete: isOver,
    is_success: status === RUN_STATUS.success,
    is_error: status === RUN_STATUS.error,
    is_cancelled: status === RUN_STATUS.cancelled,
    is_running: status === RUN_STATUS.running,
    can_retry: isFailed && isStartable,
    retry_not_supported_reason: isFailed ? (isStartable ? null : 'RETRY_UNSUPPORTED_CMD') : 'RETRY_NOT_FAILED_RUN',
    used_repo_cache: false,
    blocked_by: [],
    retrying_run_id: run.retriedRunId,
    trigger: related.hasTrigger ? triggerOf(run, redactor) : null,
    job: related.job === null ? null : { ...related.job, schedule: shortSchedule(related.job) },
    environment: related.environment,
    run_steps: related.steps,
  };
}

const NULLS_OF_RUN = nulls(`owner_thread_id executed_by_thread_id deferring_run_id artifact_s3_path last_checked_at
  last_heartbeat_at should_start_at deprecation audit`);
const NULLS_OF_TRIGGER = nulls(`azure_pull_request_id github_pull_request_id gitlab_merge_request_id
  non_native_pull_request_id schema_override dbt_version_override threads_override target_name_override
  generate_docs_override timeout_seconds_override`);

/** A schedule as jobs have it within runs: words in place of objects. */
function shortSchedule({ schedule: { cron, date, time } }: JobDocument) {
  return { cron, date: date.type, time: time.type };
}

function triggerOf(run: CatalogRun, redactor: Redactor): NonNullable<RunDocument['trigger']> {
  return {
    ...NULLS_OF_TRIGGER,
    id: run.id,
    cause: run.reason ?? '',
    cause_category: run.retriedRunId !== null ? 'rerun' : run.isAskedFor ? 'api' : null,
    steps_override: run.stepsOverride?.map((line) => redactor.command(line)) ?? null,
    job_definition_id: run.job.id,
    git_branch: run.gitBranch,
    git_sha: run.gitSha,
    created_at: formatTime(run.createdUnixMs),
  };
}

/** What a step wrote, as text; empty where it was not asked for. */
export interface StepLogs {
  readonly logs: string;
  readonly debugLogs: string;
}

/** Lines of the debug logs that a step always has. */
const TRUNCATED_LINES = 1_000;

/** Replaces the logs if they were not requested. */
export const NO_LOGS: StepLogs = { logs: '', debugLogs: '' };

/** A step as the platform's API shows it. */
export type StepDocument = z.input<typeof stepSchema>;

/** @param redactor what the caller is shown of texts @param hasDebugLogs whether the debug logs stand there whole, too */
export function stepDocument(
  step: CatalogStep,
  { logs, debugLogs }: StepLogs,
  {
    nowUnixMs,
    redactor,
    hasDebugLogs,
  }: Pick<RunDocumentContext, 'nowUnixMs' | 'redactor'> & { readonly hasDebugLogs: boolean },
): StepDocument {
  const { status, createdUnixMs, startedUnixMs } = step;
  const finishedUnixMs = isFinal(status) ? step.finishedUnixMs : null;
  const isAtWork = status !== RUN_STATUS.starting && status !== RUN_STATUS.queued;
  const workUnixMs = startedUnixMs ?? (isAtWork ? createdUnixMs : null);
  const durationMs = workUnixMs === null ? 0 : (finishedUnixMs ?? nowUnixMs) - workUnixMs;
  const command = commandOf(step, redactor);
  return {
    id: step.id,
    run_id: step.runId,
    account_id: step.accountId,
    index: step.index,
    status,
    // Clients take the text between the backticks.
    name: `Invoke dbt with \`${command}\``,
    logs,
    debug_logs: hasDebugLogs ? debugLogs : '',
    truncated_debug_logs: lastLines(debugLogs, TRUNCATED_LINES),
    log_path: null,
    debug_log_path: null,
    created_at: formatTime(createdUnixMs),
    updated_at: formatTime(step.updatedUnixMs),
    started_at: formatTimeOrNull(workUnixMs),
    finished_at: formatTimeOrNull(finishedUnixMs),
    status_color: COLORS[status],
    status_humanized: platformStatusWord(status),
    status_message: step.statusMessage === null ? null : statusText(step.statusMessage, redactor),
    duration: formatDuration(durationMs),
    duration_humanized: humanDuration(durationMs),
    run_step_command: { run_step_id: step.id, dbt_command: command },
    run_step_invocation: { run_step_id: step.id, run_id: step.runId },
  };
}

/** The end of a text. */
function lastLines(text: string, count: number): string {
  let from = text.length;
  for (let found = 0; found < count && from > 0; found += 1) from = text.lastIndexOf('\n', from - 1);
  return from <= 0 ? text : text.slice(from + 1);
}

/** The command of a step as the caller may see it: the engine's where there is one, else what was started. */
export function commandOf({ command, invocations }: CatalogStep, redactor: Redactor): string {
  const [only, ...others] = invocations;
  const typed = others.length === 0 ? only?.command : null;
  return redactor.command(typed ?? command.join(' ')).replaceAll('`', "'");
}

/** The configuration of a job. */
export interface JobFacts {
  /** Its command lines; empty where it cannot be started from here. */
  readonly commandLines: readonly string[];
  readonly threads: number | null;
  readonly targetName: string | null;
  /** `null` for none. */
  readonly timeoutMs: number | null;
}

/** Objects included in a job; `null` if not requested, or not there. */
export interface JobRelations {
  readonly environment: EnvironmentDocument | null;
  readonly latestRun: RunDocument | null;
  readonly latestCompletedRun: RunDocument | null;
}

const NO_RELATIONS: JobRelations = { environment: null, latestRun: null, latestCompletedRun: null };

/** The engine's own defaults. */
const DEFAULT_THREADS = 4;
const DEFAULT_TARGET = 'default';

/** A job as the platform's API shows it. */
export type JobDocument = z.input<typeof jobSchema>;

/** @param facts `undefined` for a job that is not in the configuration */
export function jobDocument(
  job: CatalogJob,
  facts: JobFacts | undefined,
  related: JobRelations = NO_RELATIONS,
): JobDocument {
  return {
    ...NULLS_OF_JOB,
    id: job.id,
    account_id: job.accountId,
    project_id: job.projectId,
    environment_id: job.environmentId,
    name: job.name,
    description: '',
    dbt_version: job.engineVersion,
    raw_dbt_version: job.engineVersion,
    execute_steps: [...(facts?.commandLines ?? [])],
    state: ACTIVE,
    created_at: formatTime(job.createdUnixMs),
    updated_at: formatTime(job.updatedUnixMs),
    settings: { threads: facts?.threads ?? DEFAULT_THREADS, target_name: facts?.targetName ?? DEFAULT_TARGET },
    execution: { timeout_seconds: Math.ceil((facts?.timeoutMs ?? 0) / 1_000) },
    // The schedule belongs to the program that runs its commands. The hosted platform shows this of a job without one.
    schedule: { cron: '0 * * * *', date: { type: 'every_day' }, time: { type: 'every_hour', interval: 1 } },
    triggers: {
      ...{ github_webhook: false, git_provider_webhook: false, schedule: false, on_merge: false },
      custom_branch_only: false,
    },
    job_type: 'other',
    ...{ generate_docs: false, run_generate_sources: false, generate_sources: false, triggers_on_draft_pr: false },
    ...{ is_deferrable: false, lifecycle_webhooks: false, run_failure_count: 0, cost_optimization_features: [] },
    // The hosted platform's default; dbt-jobs-as-code reads no job without it.
    ...{ run_compare_changes: false, compare_changes_flags: '--select state:modified' },
    ...{ run_lint: false, errors_on_lint_failure: false },
    environment: related.environment,
    most_recent_run: related.latestRun,
    most_recent_completed_run: related.latestCompletedRun,
  };
}

const NULLS_OF_JOB = nulls(`deferring_job_definition_id deferring_environment_id lifecycle_webhooks_url
  job_completion_trigger_condition account project fusion_readiness`);

const COLORS: Readonly<Record<RunStatus, string>> = {
  [RUN_STATUS.queued]: '#9e9e9e',
  [RUN_STATUS.starting]: '#42a5f5',
  [RUN_STATUS.running]: '#1e88e5',
  [RUN_STATUS.success]: '#43a047',
  [RUN_STATUS.error]: '#e53935',
  [RUN_STATUS.cancelled]: '#757575',
};

/** A status by its number or its word, ignoring case; `undefined` if unknown. */
export function parseStatus(text: string): RunStatus | undefined {
  const statuses = Object.values(RUN_STATUS);
  return statuses.find((status) => text === String(status) || text.toLowerCase() === STATUS_NAMES[status]);
}

/** A time as the platform writes it, in UTC with microseconds: `2021-12-07 10:32:24.326000+00:00`. */
export function formatTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('T', ' ').replace('Z', '000+00:00');
}

/** As `formatTime`; `null` stays. */
export function formatTimeOrNull(unixMs: number | null): string | null {
  return unixMs === null ? null : formatTime(unixMs);
}

/** Whole seconds as `00:01:50`; hours continue after 24. */
export function formatDuration(durationMs: number): string {
  const seconds = wholeSeconds(durationMs);
  return [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** Whole seconds in words: `1 minute, 50 seconds`. */
export function humanDuration(durationMs: number): string {
  return humanizeDuration(wholeSeconds(durationMs) * 1_000, { units: ['d', 'h', 'm', 's'] });
}

/** How long ago that was, by its two largest units: `2 hours, 3 minutes ago`; empty for `null`. */
export function humanAge(unixMs: number | null, nowUnixMs: number): string {
  if (unixMs === null) return '';
  const ageMs = wholeSeconds(nowUnixMs - unixMs) * 1_000;
  return `${humanizeDuration(ageMs, { units: ['y', 'mo', 'w', 'd', 'h', 'm', 's'], largest: 2, round: true })} ago`;
}

function wholeSeconds(durationMs: number): number {
  return Math.max(0, Math.floor(durationMs / 1_000));
}
