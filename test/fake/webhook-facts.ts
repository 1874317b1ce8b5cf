import { type Clock, systemClock } from '../../src/core/clock.js';
import { JobRunStore } from '../../src/job/job-run-store.js';
import { parseTraceId } from '../../src/record/telemetry-record.js';
import { FIRST_ACCOUNT_ID } from '../../src/storage/account-store.js';
import type { InvocationNote, TraceNote } from '../../src/storage/invocation-store.js';
import type { State } from '../../src/storage/state.js';
import { DeliveryStore } from '../../src/webhook/delivery-store.js';
import type { AttemptResult, WebhookEvent } from '../../src/webhook/event.js';
import { WebhookEventStore } from '../../src/webhook/event-store.js';
import { WebhookOutbox } from '../../src/webhook/outbox.js';
import type { RunDetailsReader } from '../../src/webhook/run-details.js';
import { SecretBox, sealUrl } from '../../src/webhook/secrets.js';
import { NO_FILTER, WEBHOOK_EVENT_TYPES } from '../../src/webhook/subscription.js';
import { type NewWebhookSubscription, SubscriptionStore } from '../../src/webhook/subscription-store.js';
import { openFreshState } from './fresh-state.js';

/** What seals secrets in tests. */
export const TEST_BOX = new SecretBox(Buffer.alloc(32, 1));

/** Knows nothing of runs but what the events say. */
export const NO_DETAILS: Pick<RunDetailsReader, 'read' | 'statusMessage'> = {
  read: () => Promise.reject(new Error('there are no details of runs here')),
  statusMessage: async (_accountId, _runId, message) => message,
};

/** A state with the stores of features beside its own. */
export type FeatureState = State & {
  readonly subscriptions: SubscriptionStore;
  readonly webhookEvents: WebhookEventStore;
  readonly deliveries: DeliveryStore;
  readonly jobRuns: JobRunStore;
};

export function withFeatureStores(state: State, archiveListener = 'off'): FeatureState {
  const { db, observer, fence } = state;
  const stores = {
    subscriptions: new SubscriptionStore(db),
    webhookEvents: new WebhookEventStore(db, archiveListener),
    deliveries: new DeliveryStore(db),
    jobRuns: new JobRunStore(db, observer, fence),
  };
  return Object.assign(state, stores);
}

/** A state in a file, in which runs make events. */
export async function openFeatureState(
  path: string,
  clock: Clock = systemClock,
  archiveListener = 'off',
): Promise<FeatureState> {
  return withFeatureStores(await openFreshState(path, new WebhookOutbox({ clock })), archiveListener);
}

/** What a test says of a subscription; its URL is sealed by `TEST_BOX`. */
export type GivenSubscription = Partial<NewWebhookSubscription> & { readonly clientUrl?: string };

/** A subscription to everything of the first account. */
export function subscription(
  id: string,
  { clientUrl = 'https://hooks.example.com/a', ...given }: GivenSubscription = {},
): NewWebhookSubscription {
  return {
    id: `wsu_${id}`,
    accountId: FIRST_ACCOUNT_ID,
    createdUnixMs: 100,
    kind: 'http',
    name: id,
    description: '',
    ...sealUrl(clientUrl, given.kind ?? 'http', `wsu_${id}`, TEST_BOX),
    eventTypes: WEBHOOK_EVENT_TYPES,
    jobIds: [],
    filter: NO_FILTER,
    ...{ hasRunDetails: false, isPerOwner: false, holdsRepeats: false },
    state: 'active',
    archiveReason: null,
    hasAuthorization: true,
    hasStandardHeaders: true,
    maxPerMinute: null,
    sealedSecret: 'sealed',
    sealedOldSecret: null,
    oldSecretUntilUnixMs: null,
    sealedHeaders: null,
    signatureHeader: 'authorization',
    sealedTemplate: null,
    sealedRoutingKey: null,
    notifyOnArchive: null,
    expectMs: null,
    ...given,
  };
}

/** What is noted of a trace with one command. @param number tells traces apart */
export function commandNote(number: number, given: Partial<InvocationNote> = {}): TraceNote {
  const traceId = parseTraceId(String(number).padStart(32, '0').replace(/^0/, 'a'));
  if (traceId === undefined) throw new Error(`${number} makes no trace id`);
  const invocation: InvocationNote = {
    ...{ index: 1, accountId: null, stepId: null, namedStepId: null, command: 'dbt build', verdict: 'success' },
    ...{ statusMessage: null },
    ...{ startedUnixMs: 1_000, endedUnixMs: 2_000, isSaved: true, parquetFile: 'telemetry.parquet' },
    ...{ engineVersion: '2.0.0', gitBranch: null, gitSha: null },
    scope: { job: 'nightly', environment: 'production', project: 'shop' },
    ...given,
  };
  return { traceId, invocations: [invocation] };
}

/** All events of a subscription, oldest first. */
export async function eventsOf(
  state: Pick<FeatureState, 'webhookEvents'>,
  id: string,
  accountId = FIRST_ACCOUNT_ID,
): Promise<readonly WebhookEvent[]> {
  const { items } = await state.webhookEvents.list(accountId, { of: { subscriptionId: id }, limit: 10_000, offset: 0 });
  return items.toReversed();
}

/** An attempt that succeeded, changed as given. */
export function attempted(event: WebhookEvent, given: Partial<AttemptResult> = {}): AttemptResult {
  return {
    event,
    urlVersion: 1,
    attempt: {
      ...{ startedUnixMs: 5_000, durationMs: 12, httpStatusCode: 200, error: null },
      ...{ requestHeaders: {}, requestBody: '{"a":1}', responseHeaders: {}, responseBody: 'ok', resentAfter: null },
    },
    next: { state: 'delivered' },
    isGone: false,
    ...given,
  };
}
