import { type Environment, nonEmpty } from '../config/environment.js';
import type { StepPosition } from '../storage/steps.js';

/** The run that a command belongs to, as far as its environment says it. */
export type RunIdentity = Pick<
  StepPosition,
  'runId' | 'jobId' | 'projectId' | 'environmentId' | 'accountId' | 'reason'
>;

/** The variables that the hosted platform sets for the commands of a run. */
const VARIABLES: Readonly<Record<string, (identity: RunIdentity) => string>> = {
  DBT_CLOUD_RUN_ID: ({ runId }) => String(runId),
  DBT_CLOUD_JOB_ID: ({ jobId }) => String(jobId),
  DBT_CLOUD_PROJECT_ID: ({ projectId }) => String(projectId),
  DBT_CLOUD_ENVIRONMENT_ID: ({ environmentId }) => String(environmentId),
  DBT_CLOUD_ACCOUNT_ID: ({ accountId }) => String(accountId),
  DBT_CLOUD_RUN_REASON: ({ reason }) => reason ?? '',
  // The platform's others are schedules and pull requests, which nothing here knows of; what the API starts or retries is `other` there, too.
  DBT_CLOUD_RUN_REASON_CATEGORY: () => 'other',
};
/** The engine writes variables with this prefix to `metadata.env` of its artifacts, without the prefix. */
const COPIED = 'DBT_ENV_CUSTOM_ENV_';

/** Adds what the hosted platform sets for the commands of a run, so that the engine's artifacts name the run. Variables that are set keep their values. */
export function withRunIdentity(environment: Environment, identity: RunIdentity): Environment {
  const added = Object.entries(VARIABLES).flatMap(([name, read]) => {
    const value = nonEmpty(environment[name]) ?? read(identity);
    return [
      [name, value],
      [COPIED + name, nonEmpty(environment[COPIED + name]) ?? value],
    ];
  });
  return { ...environment, ...Object.fromEntries(added) };
}

/** Whether an environment names the run already, as that of a job's commands does. */
export function hasRunIdentity(environment: Environment): boolean {
  return Object.keys(VARIABLES).every(
    (name) => environment[name] !== undefined && environment[COPIED + name] !== undefined,
  );
}
