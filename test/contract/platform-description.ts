// What the hosted platform publishes of its API, as far as a bridge answers it: fields, their types, and which are always there.
// Read off its OpenAPI descriptions of versions 2 and 3 (August 2026), in words of our own. They mark nothing as nullable.

/** What a value is. A text stands for one of the shapes. */
type Kind =
  | { readonly is: 'integer' | 'text' | 'flag' | 'time' | 'anything' }
  | { readonly is: 'oneOf'; readonly values: readonly (string | number)[] }
  | { readonly is: 'list'; readonly of: Kind }
  | { readonly is: 'shape'; readonly name: ShapeName };

/** An object: the fields that it always has, and those that it may have. */
interface Shape {
  readonly always: Readonly<Record<string, Kind>>;
  readonly maybe: Readonly<Record<string, Kind>>;
}

const integer: Kind = { is: 'integer' };
const text: Kind = { is: 'text' };
const flag: Kind = { is: 'flag' };
const time: Kind = { is: 'time' };
const anything: Kind = { is: 'anything' };
const oneOf = (...values: readonly (string | number)[]): Kind => ({ is: 'oneOf', values });
const list = (of: Kind): Kind => ({ is: 'list', of });
const a = (name: ShapeName): Kind => ({ is: 'shape', name });
/** Fields of one kind. */
const all = (kind: Kind, names: string): Record<string, Kind> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, kind]));

const overrides = {
  ...all(text, 'git_branch git_sha schema_override dbt_version_override target_name_override'),
  ...all(integer, 'azure_pull_request_id github_pull_request_id gitlab_merge_request_id non_native_pull_request_id'),
  ...all(integer, 'threads_override timeout_seconds_override'),
  generate_docs_override: flag,
  steps_override: list(text),
};
const jobOfRun = {
  always: {
    ...all(integer, 'account_id environment_id project_id state'),
    ...all(
      flag,
      'errors_on_lint_failure generate_docs lifecycle_webhooks run_compare_changes run_generate_sources run_lint',
    ),
    name: text,
    execution: a('job.execution'),
    settings: a('job.settings'),
    triggers: a('job.triggers'),
  },
  maybe: {
    ...all(text, 'dbt_version description compare_changes_flags'),
    ...all(integer, 'deferring_environment_id deferring_job_definition_id'),
    ...all(list(text), 'execute_steps cost_optimization_features'),
    job_type: oneOf('ci', 'scheduled', 'other', 'merge', 'exposure_sync', 'adaptive', 'hybrid'),
    triggers_on_draft_pr: flag,
  },
};
const dateWord = oneOf('every_day', 'days_of_week', 'custom_cron', 'interval_cron');
const timeWord = oneOf('every_hour', 'at_exact_hours');
const environment = {
  ...all(integer, 'account_id project_id connection_id credentials_id extended_attributes_id state'),
  ...all(text, 'name custom_branch dbt_version'),
  ...all(flag, 'use_custom_branch supports_docs'),
  deployment_type: oneOf('production', 'staging'),
  type: oneOf('development', 'deployment'),
};
const environmentV2 = {
  ...environment,
  ...all(integer, 'repository_id created_by_id'),
  dbt_project_subdirectory: text,
};
const project = {
  ...all(text, 'name description dbt_project_subdirectory'),
  ...all(integer, 'account_id connection_id repository_id semantic_layer_config_id state docs_job_id freshness_job_id'),
  type: oneOf(0, 1),
};
const subscription = {
  always: { active: flag, client_url: text, event_types: list(anything), name: text },
  maybe: {
    ...all(text, 'id description http_status_code dispatched_at deactivate_reason account_identifier'),
    job_ids: list(integer),
    account_id: integer,
  },
};
/** Fields that are required of an answer, of those that have defaults. */
function split(fields: Readonly<Record<string, Kind>>, required: string): Shape {
  const names = new Set(required.split(' '));
  const part = (isRequired: boolean) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name) === isRequired));
  return { always: part(true), maybe: part(false) };
}

const SHAPES = {
  status: {
    always: { is_success: flag, user_message: text, developer_message: text },
    maybe: { code: integer },
  },
  'webhooks.status': { always: { code: integer }, maybe: {} },
  'webhooks.deleted.status': { always: { code: integer, is_success: flag }, maybe: {} },
  extra: { always: { filters: anything, order_by: text, pagination: a('pagination') }, maybe: {} },
  'webhooks.extra': { always: { filters: a('webhooks.extra.filters'), pagination: a('pagination') }, maybe: {} },
  'webhooks.extra.filters': { always: { limit: integer, offset: integer }, maybe: {} },
  pagination: { always: { count: integer, total_count: integer }, maybe: {} },
  account: {
    always: {
      ...all(integer, 'id run_slots developer_seats it_seats explorer_seats analyst_seats read_only_seats queue_limit'),
      ...all(integer, 'pod_memory_request_mebibytes develop_pod_memory_request_mebibytes run_duration_limit_seconds'),
      ...all(flag, 'locked pending_cancel business_critical agent_credit_locked'),
      ...all(text, 'lock_reason billing_email_address enterprise_login_slug starter_repo_url git_auth_level'),
      ...all(text, 'identifier static_subdomain vanity_subdomain plan lock_cause'),
      ...all(time, 'unlocked_at trial_end_date run_locked_until copilot_locked_until created_at updated_at'),
      ...all(list(anything), 'account_migration_events groups'),
    },
    maybe: { name: text, ...all(integer, 'state docs_job_id freshness_job_id') },
  },
  run: {
    always: all(time, 'created_at updated_at'),
    maybe: {
      ...all(integer, 'id trigger_id account_id environment_id project_id job_definition_id job_id status'),
      ...all(integer, 'deferring_run_id retrying_run_id'),
      ...all(text, 'dbt_version git_branch git_sha status_message owner_thread_id executed_by_thread_id'),
      ...all(text, 'artifact_s3_path status_humanized duration queued_duration run_duration duration_humanized'),
      ...all(text, 'queued_duration_humanized run_duration_humanized created_at_humanized finished_at_humanized href'),
      ...all(flag, 'artifacts_saved has_docs_generated has_sources_generated notifications_sent in_progress'),
      ...all(flag, 'is_complete is_success is_error is_cancelled is_running can_retry used_repo_cache'),
      ...all(time, 'dequeued_at started_at finished_at last_checked_at last_heartbeat_at should_start_at'),
      blocked_by: list(integer),
      trigger: a('run.trigger'),
      job: a('run.job'),
      environment: a('run.environment'),
      run_steps: list(a('run.run_steps')),
      deprecation: anything,
      audit: anything,
      retry_not_supported_reason: oneOf(
        ...['RETRY_UNSUPPORTED_CMD', 'RETRY_UNSUPPORTED_VERSION', 'RETRY_NOT_LATEST_RUN', 'RETRY_NOT_FAILED_RUN'],
        'RETRY_NO_RUN_RESULTS',
      ),
    },
  },
  'run.trigger': {
    always: { cause: text, job_definition_id: integer },
    maybe: {
      ...overrides,
      cause_category: oneOf(
        ...['api', 'ci', 'scheduled', 'ui', 'rerun', 'job completion', 'merge', 'exposures generated', 'adaptive'],
        'ingest',
      ),
    },
  },
  'run.job': { always: jobOfRun.always, maybe: { ...jobOfRun.maybe, schedule: a('run.job.schedule') } },
  'run.job.schedule': { always: { cron: text, date: dateWord, time: timeWord }, maybe: {} },
  'run.environment': split(environmentV2, 'account_id name project_id state supports_docs type use_custom_branch'),
  'run.run_steps': {
    always: { ...all(integer, 'account_id index run_id status'), name: text },
    maybe: all(text, 'logs debug_logs log_path debug_log_path'),
  },
  step: {
    always: {
      id: integer,
      ...all(time, 'created_at updated_at started_at finished_at'),
      ...all(text, 'duration duration_humanized status_color status_humanized truncated_debug_logs'),
      run_step_command: a('step.run_step_command'),
      run_step_invocation: a('step.run_step_invocation'),
    },
    maybe: {
      ...all(integer, 'run_id account_id index status'),
      ...all(text, 'name logs debug_logs log_path debug_log_path'),
    },
  },
  'step.run_step_command': { always: { run_step_id: integer, dbt_command: text }, maybe: {} },
  'step.run_step_invocation': { always: { run_step_id: integer, run_id: integer }, maybe: {} },
  retry: { always: {}, maybe: { failed_step: text, skipped_steps: list(text) } },
  job: {
    always: {
      ...all(integer, 'id run_failure_count'),
      ...all(time, 'created_at updated_at'),
      ...all(text, 'lifecycle_webhooks_url raw_dbt_version'),
      ...all(anything, 'account environment project fusion_readiness job_completion_trigger_condition'),
      is_deferrable: flag,
    },
    maybe: { ...jobOfRun.always, ...jobOfRun.maybe, schedule: a('job.schedule'), generate_sources: flag },
  },
  'job.schedule': { always: { date: a('job.schedule.date'), time: a('job.schedule.time') }, maybe: { cron: text } },
  'job.schedule.date': { always: { type: dateWord }, maybe: { days: list(integer), cron: text } },
  'job.schedule.time': { always: { type: timeWord }, maybe: { hours: list(integer), interval: integer } },
  'job.execution': { always: { timeout_seconds: integer }, maybe: {} },
  'job.settings': { always: { threads: integer, target_name: text }, maybe: {} },
  'job.triggers': {
    always: { github_webhook: flag, schedule: flag },
    maybe: { git_provider_webhook: flag, on_merge: flag, custom_branch_only: flag },
  },
  project: {
    always: {
      id: integer,
      ...all(time, 'created_at updated_at'),
      ...all(anything, 'connection repository docs_job freshness_job fusion_readiness'),
      ...all(list(anything), 'environments group_permissions'),
      default_version: text,
    },
    maybe: project,
  },
  environment: {
    always: {
      id: integer,
      ...all(time, 'created_at updated_at'),
      ...all(anything, 'connection repository'),
      ...all(list(anything), 'custom_environment_variables jobs'),
      raw_dbt_version: text,
    },
    maybe: environmentV2,
  },
  'environment of v3': {
    always: {
      id: integer,
      ...all(time, 'created_at updated_at'),
      ...all(anything, 'credentials fusion_readiness project'),
      is_deferrable: flag,
      raw_dbt_version: text,
    },
    maybe: {
      ...environment,
      primary_profile_id: integer,
      ...all(flag, 'enable_model_query_history enable_dbt_state'),
    },
  },
  subscription,
  event: {
    always: all(
      text,
      'account_id account_identifier http_status_code id job_id payload subscription_id trigger_event_type',
    ),
    maybe: {},
  },
  receipt: {
    always: {
      ...all(text, 'dispatched_at error_info event_id http_status_code id request_body request_headers response_body'),
      subscription_id: text,
    },
    maybe: {},
  },
  test: { always: { event_id: text }, maybe: {} },
  deleted: { always: { id: text }, maybe: {} },
} as const satisfies Readonly<Record<string, Shape>>;

/** The name of a shape. */
type ShapeName =
  | 'status'
  | 'webhooks.status'
  | 'webhooks.deleted.status'
  | 'extra'
  | 'webhooks.extra'
  | 'webhooks.extra.filters'
  | 'pagination'
  | 'account'
  | 'run'
  | 'run.trigger'
  | 'run.job'
  | 'run.job.schedule'
  | 'run.environment'
  | 'run.run_steps'
  | 'step'
  | 'step.run_step_command'
  | 'step.run_step_invocation'
  | 'retry'
  | 'job'
  | 'job.schedule'
  | 'job.schedule.date'
  | 'job.schedule.time'
  | 'job.execution'
  | 'job.settings'
  | 'job.triggers'
  | 'project'
  | 'environment'
  | 'environment of v3'
  | 'subscription'
  | 'event'
  | 'receipt'
  | 'test'
  | 'deleted';

const ofOne = (kind: Kind): Shape => ({ always: { data: kind, status: a('status') }, maybe: {} });
const ofList = (kind: Kind): Shape => ({
  always: { data: list(kind), status: a('status'), extra: a('extra') },
  maybe: {},
});
const ofHook = (kind: Kind): Shape => ({ always: { data: kind, status: a('webhooks.status') }, maybe: {} });
const ofHooks = (kind: Kind): Shape => ({
  always: { data: list(kind), status: a('webhooks.status'), extra: a('webhooks.extra') },
  maybe: {},
});
const V2 = '/api/v2/accounts';
const V3 = '/api/v3/accounts/{a}';
const HOOK = `${V3}/webhooks`;

/** What each request that a bridge answers is answered with, by the published description. */
export const DESCRIBED: Readonly<Record<string, Shape>> = {
  [`GET ${V2}`]: ofList(a('account')),
  [`GET ${V2}/{a}`]: ofOne(a('account')),
  [`GET ${V2}/{a}/runs`]: ofList(a('run')),
  [`GET ${V2}/{a}/runs/{id}`]: ofOne(a('run')),
  [`GET ${V2}/{a}/runs/{id}/retry`]: ofOne(a('retry')),
  [`POST ${V2}/{a}/runs/{id}/retry`]: ofOne(a('run')),
  [`POST ${V2}/{a}/runs/{id}/cancel`]: ofOne(a('run')),
  [`GET ${V2}/{a}/runs/{id}/artifacts`]: ofOne(list(text)),
  [`GET ${V2}/{a}/steps/{id}`]: ofOne(a('step')),
  [`GET ${V2}/{a}/jobs`]: ofList(a('job')),
  [`GET ${V2}/{a}/jobs/{id}`]: ofOne(a('job')),
  [`POST ${V2}/{a}/jobs/{id}/run`]: ofOne(a('run')),
  [`POST ${V2}/{a}/jobs/{id}/rerun`]: ofOne(a('run')),
  [`GET ${V2}/{a}/projects`]: ofList(a('project')),
  [`GET ${V2}/{a}/projects/{id}`]: ofOne(a('project')),
  [`GET ${V2}/{a}/environments`]: ofList(a('environment')),
  [`GET ${V2}/{a}/environments/{id}`]: ofOne(a('environment')),
  [`GET ${V3}/projects`]: ofList(a('project')),
  [`GET ${V3}/projects/{id}`]: ofOne(a('project')),
  [`GET ${V3}/projects/{id}/environments`]: ofList(a('environment of v3')),
  [`GET ${V3}/projects/{id}/environments/{id}`]: ofOne(a('environment of v3')),
  [`GET ${HOOK}/subscriptions`]: ofHooks(a('subscription')),
  [`POST ${HOOK}/subscriptions`]: ofHook(a('subscription')),
  [`GET ${HOOK}/subscription/{id}`]: ofHook(a('subscription')),
  [`PUT ${HOOK}/subscription/{id}`]: ofHook(a('subscription')),
  [`DELETE ${HOOK}/subscription/{id}`]: {
    always: { data: a('deleted'), status: a('webhooks.deleted.status') },
    maybe: {},
  },
  [`GET ${HOOK}/subscription/{id}/test`]: ofHook(a('test')),
  [`GET ${HOOK}/subscription/{id}/events`]: ofHooks(a('event')),
  [`GET ${HOOK}/subscription/{id}/event/{id}/receipt`]: ofHook(list(a('receipt'))),
  [`GET ${HOOK}/event/{id}`]: ofHook(a('event')),
  [`GET ${HOOK}/event/{id}/receipts`]: ofHook(list(a('receipt'))),
  [`GET ${HOOK}/receipt/{id}`]: ofHook(a('receipt')),
};

/** How an answer differs from its shape, as `run.audit is null`: what is null, left out, of another type, or beyond the description. */
export function differencesOf(value: unknown, shape: Shape, name = 'answer'): ReadonlySet<string> {
  const found = new Set<string>();
  compareObject(value, shape, name);
  return found;

  function compareObject(object: unknown, { always, maybe }: Shape, at: string): void {
    if (typeof object !== 'object' || object === null || Array.isArray(object)) {
      found.add(`${at} is no object`);
      return;
    }
    const fields = { ...maybe, ...always };
    const there = new Map<string, unknown>(Object.entries(object));
    for (const [field, kind] of Object.entries(fields)) {
      if (there.has(field)) compare(there.get(field), kind, `${at}.${field}`);
      else found.add(`${at}.${field} is left out`);
    }
    for (const field of there.keys()) if (!(field in fields)) found.add(`${at}.${field} is beyond the description`);
  }

  function compare(one: unknown, kind: Kind, at: string): void {
    if (one === null) {
      found.add(`${at} is null`);
      return;
    }
    switch (kind.is) {
      case 'list':
        if (Array.isArray(one)) for (const item of one) compare(item, kind.of, at);
        else found.add(`${at} is no list`);
        return;
      case 'shape':
        compareObject(one, SHAPES[kind.name], kind.name);
        return;
      case 'oneOf':
        if (!kind.values.some((each) => each === one)) found.add(`${at} is none of its values: ${String(one)}`);
        return;
      case 'integer':
        if (!Number.isInteger(one)) found.add(`${at} is no integer`);
        return;
      case 'text':
        if (typeof one !== 'string') found.add(`${at} is no text`);
        return;
      case 'flag':
        if (typeof one !== 'boolean') found.add(`${at} is no flag`);
        return;
      case 'time':
        if (typeof one !== 'string' || Number.isNaN(Date.parse(one.replace(' ', 'T')))) found.add(`${at} is no time`);
        return;
      case 'anything':
        return;
    }
  }
}
