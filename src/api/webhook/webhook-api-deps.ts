import type { Clock } from '../../component/clock.js';
import type { JobCatalog } from '../../store/run-catalog.js';
import type { WebhookEventStore } from '../../store/webhook/event-store.js';
import type { SubscriptionStore } from '../../store/webhook/subscription-store.js';
import type { StoryTeller } from '../../webhook/message/run-story.js';
import type { WebhookDesk } from '../../webhook/webhook-desk.js';

/** What the APIs of webhooks work with. */
export interface WebhookApiDeps {
  readonly subscriptions: Pick<SubscriptionStore, 'find' | 'list' | 'remove'>;
  readonly events: Pick<WebhookEventStore, 'list' | 'find' | 'attemptsOf' | 'replay'>;
  readonly jobs: Pick<JobCatalog, 'findJobs'>;
  readonly openDesk: () => Promise<WebhookDesk>;
  /** Something may be due. */
  readonly wake: () => void;
  /** What payloads say of runs. */
  readonly stories: Pick<StoryTeller, 'statusMessage'>;
  readonly clock: Clock;
}
