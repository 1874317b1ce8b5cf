import type { DeliveryStore, OldDelivery } from '../store/webhook/delivery-store.js';
import type { Removable, RetainedKind, RetentionLimits } from './retained-kind.js';

/** What it works with. */
export interface RetainedDeliveriesDeps {
  readonly store: DeliveryStore;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** Deliveries that go at a time. */
const PAGE = 100;
/** What is still to be delivered stays for so long, in milliseconds: longer than all attempts take. */
const WAITING_MS = 7 * 86_400_000;

/** Events of webhooks with the log of the attempts to deliver them. */
export class RetainedDeliveries implements RetainedKind {
  readonly name = 'deliveries';
  readonly noun = 'deliveries';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedDeliveriesDeps,
  ) {}

  totalBytes(): Promise<number> {
    return this.deps.store.totalBytes();
  }

  /** Those that are too old come apart from those that may have to go for their size: what goes at a time is of one sort. */
  async *removables(endedUntilUnixMs: number): AsyncGenerator<Removable> {
    const { store, nowUnixMs } = this.deps;
    const { maxAgeMs } = this.limits;
    const waitingUntilUnixMs = Math.min(endedUntilUnixMs, nowUnixMs() - Math.max(maxAgeMs ?? 0, WAITING_MS));
    const oldUnixMs = maxAgeMs === null ? 0 : nowUnixMs() - maxAgeMs;
    let after: OldDelivery | null = null;
    for (const untilUnixMs of [Math.min(oldUnixMs, endedUntilUnixMs), endedUntilUnixMs]) {
      for (;;) {
        const page: readonly OldDelivery[] = await store.listOld(untilUnixMs, waitingUntilUnixMs, after, PAGE);
        const last = page.at(-1);
        if (last === undefined) break;
        after = last;
        yield {
          count: page.length,
          endedUnixMs: last.createdUnixMs,
          measure: async () => ({ fileCount: 0, sizeBytes: page.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }),
          remove: async () => {
            await store.remove(page);
            return true;
          },
        };
      }
    }
  }
}
