import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../core/clock.js';
import { slices } from '../core/lists.js';
import { type MetricSource, type Sample, stateSamples } from '../metric/feature.js';
import { archiveReasonOf } from './circuit-breaker.js';
import type { CountsBySubscription, DeliveryCounts } from './dispatcher.js';
import type { SubscriptionOverview, SubscriptionStore } from './subscription-store.js';

/** What the metrics are read from. */
export interface WebhookMetricsDeps {
  readonly subscriptions: Pick<SubscriptionStore, 'readOverview'>;
  /** What this process has delivered; `undefined` where it never had to. */
  readonly countsBySubscription: () => CountsBySubscription | undefined;
  readonly clock: Clock;
}

/** Subscriptions that have samples: archived ones first, then those that fail most. */
const MAX_SUBSCRIPTIONS = 1_000;
/** Between as many of them others get their turn. */
const AT_A_TIME = 100;
const STATES = ['active', 'inactive', 'archived'] as const;
const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;

/** Reads how subscriptions stand, from the state, and what this process did for them. */
export function webhookMetrics({
  subscriptions: store,
  countsBySubscription,
  clock,
}: WebhookMetricsDeps): MetricSource {
  return { name: 'webhooks', read };

  async function read(): Promise<readonly Sample[]> {
    const { countByState, subscriptions } = await store.readOverview(MAX_SUBSCRIPTIONS);
    const known = countsBySubscription();
    const nowUnixMs = clock.nowUnixMs();
    const samples: Sample[] = STATES.map((state) => ({
      name: 'run_bridge_webhook_subscriptions',
      value: countByState[state],
      labels: { state },
    }));
    for (const [reason, value] of Object.entries(known?.archivings ?? {})) {
      samples.push({ name: 'run_bridge_webhook_archivings_total', value, labels: { reason } });
    }
    for (const some of slices(subscriptions, AT_A_TIME)) {
      for (const one of some) {
        samples.push(...standingSamples(one, nowUnixMs));
        if (known !== undefined) samples.push(...countSamples(one, known.of(one.id)));
      }
      await setImmediate();
    }
    return samples;
  }
}

function standingSamples(one: SubscriptionOverview, nowUnixMs: number): readonly Sample[] {
  const labels = labelsOf(one);
  const { name, kind, failedCount, failingSinceUnixMs, pendingCount, oldestPendingUnixMs } = one;
  const reason = one.archiveReason === null ? '' : (archiveReasonOf(one.archiveReason) ?? 'other');
  return [
    ...stateSamples(
      STATES,
      one.state,
      (state, value): Sample => ({
        name: 'run_bridge_webhook_subscription_state',
        value,
        labels: { ...labels, name, kind, state, reason: state === 'archived' ? reason : '' },
      }),
    ),
    ...stateSamples(
      BREAKER_STATES,
      breakerState(one, nowUnixMs),
      (state, value): Sample => ({ name: 'run_bridge_webhook_breaker_state', value, labels: { ...labels, state } }),
    ),
    { name: 'run_bridge_webhook_failures_in_a_row', value: failedCount, labels },
    { name: 'run_bridge_webhook_failing_seconds', value: secondsSince(failingSinceUnixMs, nowUnixMs), labels },
    { name: 'run_bridge_webhook_pending_events', value: pendingCount, labels },
    {
      name: 'run_bridge_webhook_oldest_pending_age_seconds',
      value: secondsSince(oldestPendingUnixMs, nowUnixMs),
      labels,
    },
  ];
}

function countSamples(one: SubscriptionOverview, counts: DeliveryCounts): readonly Sample[] {
  const outcome = (name: string) => ({ ...labelsOf(one), outcome: name });
  const [delivered, failed] = [outcome('delivered'), outcome('failed')];
  return [
    { name: 'run_bridge_webhook_events_total', value: counts.deliveredCount, labels: delivered },
    { name: 'run_bridge_webhook_events_total', value: counts.failedCount, labels: failed },
    { name: 'run_bridge_webhook_events_total', value: counts.skippedCount, labels: outcome('skipped') },
    { name: 'run_bridge_webhook_attempts_total', value: counts.deliveredCount, labels: delivered },
    { name: 'run_bridge_webhook_attempts_total', value: counts.failedAttemptCount, labels: failed },
    { name: 'run_bridge_webhook_attempt_seconds_total', value: counts.deliveredMs / 1_000, labels: delivered },
    { name: 'run_bridge_webhook_attempt_seconds_total', value: counts.failedMs / 1_000, labels: failed },
  ];
}

function labelsOf({ accountId, id }: SubscriptionOverview) {
  return { account: String(accountId), subscription: id };
}

/** A pause that is over, and was not ended by a success, lets one attempt through. */
function breakerState({ pausedUntilUnixMs }: SubscriptionOverview, nowUnixMs: number) {
  if (pausedUntilUnixMs === 0) return 'closed';
  return pausedUntilUnixMs > nowUnixMs ? 'open' : 'half_open';
}

/** Returns 0 for `null`, and where the wall clock was set back. */
function secondsSince(unixMs: number | null, nowUnixMs: number): number {
  return unixMs === null ? 0 : Math.max(0, (nowUnixMs - unixMs) / 1_000);
}
