import { describe, expect, it } from 'vitest';
import type { OldDelivery } from '../../../src/webhook/delivery-store.js';
import { attempted, commandNote, eventsOf, type FeatureState, subscription } from '../../fake/webhook-facts.js';

const LATER = 9_000_000_000_000;
const CLAIM = { holder: 'p', nowUnixMs: LATER, leaseUntilUnixMs: LATER + 1_000 };

/** What every DeliveryStore does. `withState` gives the body an empty state and clears it away afterwards. */
export function deliveryStoreContract(
  withState: (body: (state: FeatureState) => Promise<void>) => Promise<void>,
): void {
  /** Three events; the first of them is delivered, the others wait. @returns the subscription's id */
  async function add(state: FeatureState): Promise<string> {
    const a = await state.subscriptions.add(subscription('a', { eventTypes: ['job.run.completed'] }));
    for (let at = 1; at <= 3; at += 1) await state.invocations.note([commandNote(at)], 4_000);
    const [event] = await state.webhookEvents.claim(a, 1, CLAIM);
    if (event === undefined) throw new Error('nothing was claimed');
    const done = attempted(event, { next: { state: 'delivered' } });
    await state.webhookEvents.finish([done], 'p', (standing) => ({ standing, archiveReason: null }));
    return a.id;
  }
  const bytesOf = (deliveries: readonly OldDelivery[]) => deliveries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

  describe('a store of deliveries', () => {
    it('lists what is over, and what waits only when it is old enough for that, page by page', () =>
      withState(async (state) => {
        await add(state);
        const { deliveries } = state;
        const over = await deliveries.listOld(LATER, 0, null, 9);
        expect(over).toHaveLength(1);
        const first = await deliveries.listOld(LATER, LATER, null, 2);
        const rest = await deliveries.listOld(LATER, LATER, first[1] ?? null, 2);
        expect([first[0], first.length, rest.length]).toEqual([over[0], 2, 1]);
        expect(new Set([...first, ...rest].map(({ seq }) => seq)).size).toBe(3);
        expect(await deliveries.listOld((over[0]?.createdUnixMs ?? 0) - 1, LATER, null, 9)).toEqual([]);
      }));

    it('knows what each takes, its attempts included, and all of them', () =>
      withState(async (state) => {
        const id = await add(state);
        const all = await state.deliveries.listOld(LATER, LATER, null, 9);
        expect(await state.deliveries.totalBytes()).toBe(bytesOf(all));
        const event = (await eventsOf(state, id)).find((one) => one.state === 'delivered');
        const [attempt] = await state.webhookEvents.attemptsOf(event?.id ?? '');
        const written = [attempt?.requestHeaders, attempt?.responseHeaders, event?.facts].map((one) =>
          JSON.stringify(one),
        );
        const texts = [...written, attempt?.requestBody, attempt?.responseBody, attempt?.error];
        const bytes = texts.map((text) => Buffer.byteLength(text ?? ''));
        expect(all[0]?.sizeBytes).toBe(bytes.reduce((a, b) => a + b));
      }));

    it('removes deliveries with their attempts, and no others', () =>
      withState(async (state) => {
        const id = await add(state);
        const { deliveries, webhookEvents } = state;
        const delivered = (await eventsOf(state, id)).find((one) => one.state === 'delivered');
        expect(await webhookEvents.attemptsOf(delivered?.id ?? '')).toHaveLength(1);
        await deliveries.remove(await deliveries.listOld(LATER, 0, null, 9));
        expect(await webhookEvents.attemptsOf(delivered?.id ?? '')).toEqual([]);
        expect((await eventsOf(state, id)).map((one) => one.state)).toEqual(['pending', 'pending']);
        await deliveries.remove(await deliveries.listOld(LATER, LATER, null, 9));
        expect([await eventsOf(state, id), await deliveries.totalBytes()]).toEqual([[], 0]);
      }));
  });
}
