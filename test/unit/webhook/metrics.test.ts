import { afterEach, describe, expect, it } from 'vitest';
import { writeExposition } from '../../../src/metric/routes.js';
import { DEFAULT_BREAKER_LIMITS } from '../../../src/webhook/circuit-breaker.js';
import { webhookMetrics } from '../../../src/webhook/metrics.js';
import { WebhookBench } from '../../fake/webhook-bench.js';
import { ParsedMetrics } from '../../tool/parsed-metrics.js';

const STATE = 'run_bridge_webhook_subscription_state';
const BREAKER = 'run_bridge_webhook_breaker_state';
const EVENTS = 'run_bridge_webhook_events_total';
const ATTEMPTS = 'run_bridge_webhook_attempts_total';
/** So few failures archive a subscription here, and fewer make pauses. */
const LIMITS = { ...DEFAULT_BREAKER_LIMITS, maxFailedCount: 4, pauseFromCount: 2, pauseMs: 15_000 };
const LABELS = { account: '10001', subscription: 'wsu_a', name: 'a', kind: 'http' };

let bench: WebhookBench;
afterEach(() => bench.close());

async function scrape(): Promise<ParsedMetrics> {
  const { state, clock, dispatcher } = bench;
  const source = webhookMetrics({
    subscriptions: state.subscriptions,
    countsBySubscription: () => dispatcher.countsBySubscription,
    clock,
  });
  return new ParsedMetrics((await writeExposition(await source.read(), 'prometheus')).text);
}

describe('metrics of a subscription', () => {
  it('say what waits, what was delivered and how long that took', async () => {
    bench = await WebhookBench.open();
    await bench.subscribe('a');
    await bench.endRun();
    bench.clock.advance(7_000);
    const before = await scrape();
    expect(before.value('run_bridge_webhook_pending_events')).toBe(1);
    expect(before.value('run_bridge_webhook_oldest_pending_age_seconds')).toBe(7);
    bench.clock.creepMs = 1;
    await bench.pass(0);
    bench.clock.creepMs = 0;
    const after = await scrape();
    expect(after.value('run_bridge_webhook_pending_events')).toBe(0);
    expect(after.value('run_bridge_webhook_oldest_pending_age_seconds')).toBe(0);
    expect(after.value(EVENTS, { ...outcome('delivered'), subscription: 'wsu_a', account: '10001' })).toBe(1);
    expect(after.value(ATTEMPTS, outcome('delivered'))).toBe(1);
    expect(after.value('run_bridge_webhook_attempt_seconds_total', outcome('delivered'))).toBeGreaterThan(0);
    expect(after.value(ATTEMPTS, outcome('failed'))).toBe(0);
    expect(after.labelsWith(STATE, 1)).toEqual([{ ...LABELS, state: 'active', reason: '' }]);
  });

  it('follow a receiver that fails until it is archived, with the reason, and is set active again', async () => {
    bench = await WebhookBench.open({ limits: LIMITS });
    bench.answer = () => ({ status: 500 });
    await bench.subscribe('a');
    for (const job of ['one', 'two']) await bench.endRun(job);
    await bench.pass(0);
    // The first pause goes on.
    const open = await scrape();
    expect(open.labelsWith(BREAKER, 1)).toEqual([{ account: '10001', subscription: 'wsu_a', state: 'open' }]);
    expect(open.value('run_bridge_webhook_failures_in_a_row')).toBe(2);
    bench.clock.advance(15_000);
    const halfOpen = await scrape();
    expect(halfOpen.labelsWith(BREAKER, 1)).toMatchObject([{ state: 'half_open' }]);
    expect(halfOpen.value('run_bridge_webhook_failing_seconds')).toBe(15);
    for (const waitMs of [0, 60_000, 60_000]) await bench.pass(waitMs);

    const archived = await scrape();
    expect(archived.labelsWith(STATE, 1)).toEqual([{ ...LABELS, state: 'archived', reason: 'failures_in_a_row' }]);
    expect(archived.value('run_bridge_webhook_subscriptions', { state: 'archived' })).toBe(1);
    expect(archived.value('run_bridge_webhook_archivings_total', { reason: 'failures_in_a_row' })).toBe(1);
    expect(archived.value(ATTEMPTS, outcome('failed'))).toBe(4);
    expect(archived.value(EVENTS, outcome('skipped'))).toBe(2);
    expect(archived.value('run_bridge_webhook_pending_events')).toBe(0);

    await bench.state.subscriptions.change(10_001, 'wsu_a', () => ({ state: 'active' }), bench.clock.nowUnixMs());
    const revived = await scrape();
    expect(revived.labelsWith(STATE, 1)).toEqual([{ ...LABELS, state: 'active', reason: '' }]);
    expect(revived.labelsWith(BREAKER, 1)).toMatchObject([{ state: 'closed' }]);
    expect(revived.value('run_bridge_webhook_failures_in_a_row')).toBe(0);
  });

  it('are there for what another process, or an earlier version, has archived', async () => {
    bench = await WebhookBench.open();
    await bench.subscribe('a', { state: 'archived', archiveReason: 'in other words' });
    const source = webhookMetrics({
      subscriptions: bench.state.subscriptions,
      countsBySubscription: () => undefined,
      clock: bench.clock,
    });
    const { text } = await writeExposition(await source.read(), 'prometheus');
    const parsed = new ParsedMetrics(text);
    expect(parsed.labelsWith(STATE, 1)).toEqual([{ ...LABELS, state: 'archived', reason: 'other' }]);
    expect(text).not.toContain(EVENTS);
  });
});

function outcome(name: string) {
  return { outcome: name };
}
