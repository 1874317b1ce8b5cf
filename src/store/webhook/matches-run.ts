import type { RunStatus } from '../run-status.js';
import { RUN_STATUS } from '../run-status.js';
import type { RunFacts } from './run-facts.js';
import type { WebhookEventType, WebhookSettings, WebhookTransition } from './webhook-subscription.js';

/** Whether a subscription is for an event, but for its transitions. */
export function matchesRun(
  { eventTypes, jobIds, filter }: Pick<WebhookSettings, 'eventTypes' | 'jobIds' | 'filter'>,
  eventType: WebhookEventType,
  facts: RunFacts,
): boolean {
  const { environments, projects, statuses, transitions } = filter;
  if (!eventTypes.includes(eventType)) return false;
  if (jobIds.length > 0 && !jobIds.includes(facts.jobId)) return false;
  if (environments.length > 0 && !environments.includes(facts.environmentName)) return false;
  if (projects.length > 0 && !projects.includes(facts.projectName)) return false;
  if (eventType === 'job.run.started') return transitions.length === 0;
  return statuses.length === 0 || statuses.includes(facts.status);
}

/**
 * What a run is beside the one before it; `null` for neither.
 * @param previous status of the job's last run in that environment that ended well or in error; `null` for none
 */
export function transitionOf(status: RunStatus, previous: RunStatus | null): WebhookTransition | null {
  if (status === RUN_STATUS.error && previous !== RUN_STATUS.error) return 'first_failure';
  return status === RUN_STATUS.success && previous === RUN_STATUS.error ? 'recovery' : null;
}
