import type { CatalogJob } from '../../storage/run-catalog.js';
import { formatTime } from './platform-time.js';

/** What the configuration says of a job. */
export interface JobFacts {
  /** Its command lines; empty where it cannot be started from here. */
  readonly commandLines: readonly string[];
  readonly threads: number | null;
  readonly targetName: string | null;
}

/** The engine's own defaults. */
const DEFAULT_THREADS = 4;
const DEFAULT_TARGET = 'default';

/** A job as the platform's API shows it. */
export type JobDocument = ReturnType<typeof jobDocument>;

/** @param facts `undefined` for a job that the configuration does not declare */
export function jobDocument(job: CatalogJob, facts: JobFacts | undefined) {
  return {
    id: job.id,
    account_id: job.accountId,
    project_id: job.projectId,
    environment_id: job.environmentId,
    name: job.name,
    description: '',
    execute_steps: facts?.commandLines ?? [],
    state: 1,
    created_at: formatTime(job.createdUnixMs),
    updated_at: formatTime(job.updatedUnixMs),
    settings: { threads: facts?.threads ?? DEFAULT_THREADS, target_name: facts?.targetName ?? DEFAULT_TARGET },
    // Whoever runs its commands has its schedule.
    schedule: { cron: '', date: { type: 'every_day' }, time: { type: 'every_hour', interval: 1 } },
    triggers: { github_webhook: false, git_provider_webhook: false, schedule: false, custom_branch_only: false },
    job_type: 'other',
    generate_docs: false,
    run_generate_sources: false,
    deferring_job_definition_id: null,
    deferring_environment_id: null,
  };
}
