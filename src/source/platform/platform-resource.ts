import type { Resource, ResourceValue } from '../../record/resource.js';
import type { PlatformRun, PlatformStep } from './platform-run.js';

/** A step of a hosted run, and where it is. */
export interface PlacedStep {
  readonly accountId: string;
  readonly run: PlatformRun;
  readonly step: PlatformStep;
  /** The step's id in the book of runs; `null` where it is not entered there. */
  readonly stepId: string | null;
}

/**
 * What the platform says of a run, as the resource of its records: it stays with them on disk, in hand-overs and in
 * exports, so that runs are found by it in any backend. Names are OpenTelemetry's (CI/CD, VCS and deployment) where there
 * are some. Commands, causes and messages are left out, since they may hold literals.
 */
export function platformResource({ accountId, run, step, stepId }: PlacedStep): Resource {
  const attributes: Readonly<Record<string, ResourceValue | null>> = {
    'run_bridge.step.id': stepId,
    'cicd.pipeline.name': run.jobName,
    'cicd.pipeline.run.id': run.runId,
    'cicd.pipeline.run.url.full': run.href,
    'cicd.pipeline.task.name': String(step.index),
    'cicd.pipeline.task.run.id': step.stepId,
    'deployment.environment.name': run.environmentName,
    'vcs.ref.head.revision': run.gitSha,
    'vcs.ref.head.name': run.gitBranch,
    'run_bridge.platform.account_id': accountId,
    'run_bridge.platform.project_id': run.projectId,
    'run_bridge.platform.environment_id': run.environmentId,
    'run_bridge.platform.job_id': run.jobId,
    'run_bridge.platform.run_id': run.runId,
    'run_bridge.platform.run_status': run.status,
    'run_bridge.platform.step_index': step.index,
  };
  const known = Object.entries(attributes).filter((entry): entry is [string, ResourceValue] => entry[1] !== null);
  return { attributes: Object.fromEntries(known), scope: { name: '', version: '' } };
}
