import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { CatalogRun } from '../../storage/run-catalog.js';
import { isFinal, RUN_STATUS } from '../../storage/run-status.js';
import type { JobDocument } from './job-document.js';
import { formatDuration, formatTime, formatTimeOrNull, humanAge, humanDuration } from './platform-time.js';
import { statusWord } from './status-words.js';
import type { StepDocument } from './step-document.js';

/** What stands in a run beside itself; `null`, or an empty list, where it was not asked for. */
export interface RunRelations {
  readonly job: JobDocument | null;
  readonly hasTrigger: boolean;
  readonly hasEnvironment: boolean;
  readonly steps: readonly StepDocument[];
}

/** What a run's document is made of beside the run. */
export interface RunDocumentContext {
  readonly nowUnixMs: number;
  /** What the caller is shown of texts. */
  readonly redactor: Redactor;
  /** Where clients reach this server: `http://127.0.0.1:4380`. */
  readonly baseUrl: string;
  /** Whether the run's job has commands that can be started from here. */
  readonly isStartable: (run: CatalogRun) => boolean;
}

/** A run as the platform's API shows it. */
export type RunDocument = ReturnType<typeof runDocument>;

export function runDocument(run: CatalogRun, related: RunRelations, context: RunDocumentContext) {
  const { nowUnixMs, baseUrl, redactor } = context;
  const { status, createdUnixMs, startedUnixMs, finishedUnixMs } = run;
  const endUnixMs = finishedUnixMs ?? nowUnixMs;
  // A command that failed before its first record was at work from its start on.
  const workUnixMs = startedUnixMs ?? (finishedUnixMs === null ? null : run.dequeuedUnixMs);
  const isOver = isFinal(status);
  const durations = {
    duration: endUnixMs - createdUnixMs,
    queued_duration: (workUnixMs ?? endUnixMs) - createdUnixMs,
    run_duration: workUnixMs === null ? 0 : endUnixMs - workUnixMs,
  };
  return {
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
    status_humanized: statusWord(status),
    href: `${baseUrl}/api/v2/accounts/${run.accountId}/runs/${run.id}/`,
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
    can_retry: isOver && status !== RUN_STATUS.success && context.isStartable(run),
    trigger: related.hasTrigger ? triggerOf(run) : null,
    job: related.job,
    environment: related.hasEnvironment ? environmentOf(run) : null,
    run_steps: related.steps,
  };
}

function triggerOf(run: CatalogRun) {
  return {
    id: run.id,
    cause: run.reason ?? '',
    job_definition_id: run.job.id,
    git_branch: run.gitBranch,
    git_sha: run.gitSha,
    created_at: formatTime(run.createdUnixMs),
  };
}

function environmentOf(run: CatalogRun) {
  const { id, name } = run.environment;
  return { id, account_id: run.accountId, project_id: run.project.id, name, state: 1 };
}
