import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SweepResult, sweepKind } from '../../../src/retention/sweep.js';
import { retainedDeliveries } from '../../../src/webhook/feature.js';
import type { WebhookSubscription } from '../../../src/webhook/subscription.js';
import { FakeClock } from '../../fake/fake-clock.js';
import {
  attempted,
  commandNote,
  eventsOf,
  type FeatureState,
  openFeatureState,
  subscription,
} from '../../fake/webhook-facts.js';

const DAY_MS = 86_400_000;

let folder: string;
let clock: FakeClock;
let state: FeatureState;
let subscribed: WebhookSubscription;
let count: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-deliveries-'));
  clock = new FakeClock();
  state = await openFeatureState(join(folder, 'state.db'), clock);
  subscribed = await state.subscriptions.add(subscription('a', { eventTypes: ['job.run.completed'] }));
  count = 0;
});
afterEach(async () => {
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

/** Events of runs that end now. */
async function end(runCount: number, isDelivered = true): Promise<void> {
  for (let at = 0; at < runCount; at += 1) {
    count += 1;
    await state.invocations.note([commandNote(count)], clock.nowUnixMs());
    if (!isDelivered) continue;
    const nowUnixMs = clock.nowUnixMs();
    const [event] = await state.webhookEvents.claim(subscribed, 1, {
      holder: 'p',
      nowUnixMs,
      leaseUntilUnixMs: nowUnixMs + 1,
    });
    if (event === undefined) throw new Error('nothing was claimed');
    await state.webhookEvents.finish([attempted(event)], 'p', (standing) => ({ standing, archiveReason: null }));
  }
}

function sweep(maxAgeMs: number | null, maxBytes: number | null = null, isDry = false): Promise<SweepResult> {
  const nowUnixMs = clock.nowUnixMs();
  const limits = { 'retain-deliveries': { maxAgeMs, maxBytes } };
  const kind = retainedDeliveries(limits, { state, nowUnixMs: () => nowUnixMs });
  return sweepKind(kind, { nowUnixMs, isDry, signal: new AbortController().signal });
}

describe('deliveries', () => {
  it('go when they are old, whatever comes with them', async () => {
    await end(150);
    const bytes = await state.deliveries.totalBytes();
    clock.advance(DAY_MS);
    await end(2);
    clock.advance(DAY_MS);
    expect(await sweep(2 * DAY_MS + 1)).toMatchObject({ count: 0 });
    const gone = { kind: 'deliveries', count: 150, fileCount: 0, sizeBytes: bytes, excessBytes: 0 };
    expect(await sweep(2 * DAY_MS, null, true)).toEqual(gone);
    expect(await sweep(2 * DAY_MS)).toEqual(gone);
    expect(await eventsOf(state, subscribed.id)).toHaveLength(2);
  });

  it('stay for a week while they are still to be delivered, or as long as others', async () => {
    await end(1, false);
    clock.advance(7 * DAY_MS - 1);
    expect(await sweep(DAY_MS)).toMatchObject({ count: 0 });
    clock.advance(1);
    expect(await sweep(8 * DAY_MS)).toMatchObject({ count: 0 });
    expect(await sweep(DAY_MS)).toMatchObject({ count: 1 });
  });

  it('go oldest first where they are too much, and those that are too old in any case', async () => {
    await end(3);
    clock.advance(DAY_MS);
    await end(120);
    clock.advance(3_600_000);
    await end(1);
    clock.advance(3_600_000);
    expect(await sweep(DAY_MS, 10_000_000)).toMatchObject({ count: 3 });
    const bytes = await state.deliveries.totalBytes();
    expect(await sweep(DAY_MS, bytes - 1, true)).toMatchObject({ count: 100, excessBytes: 0 });
    expect(await sweep(null, 0)).toMatchObject({ count: 121, sizeBytes: bytes, excessBytes: 0 });
    expect(await eventsOf(state, subscribed.id)).toEqual([]);
  });
});
