import type { Delivery, Signal } from '../record/record-batch.js';
import { recordCountOf } from '../record/record-page.js';

/** What came with requests of one signal that were accepted, since the start. */
export interface AcceptedCounts {
  readonly requestCount: number;
  /** Spans or log records. */
  readonly itemCount: number;
  /** Inflated. */
  readonly bodyBytes: number;
  /** Left out of what was accepted, and the sender told so. */
  readonly rejectedCount: number;
}

/** What an intake took and what it did not, since the start. Counted by the request, never by the record. */
export class IntakeCounts {
  readonly accepted: Readonly<Record<Signal, { -readonly [K in keyof AcceptedCounts]: number }>> = {
    traces: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
    logs: { requestCount: 0, itemCount: 0, bodyBytes: 0, rejectedCount: 0 },
  };
  /** By reason; a closed set, so this map is bounded. */
  readonly refused = new Map<string, number>();

  accept(signal: Signal, itemCount: number, bodyBytes: number, rejectedCount: number): void {
    const counts = this.accepted[signal];
    counts.requestCount += 1;
    counts.itemCount += itemCount;
    counts.bodyBytes += bodyBytes;
    counts.rejectedCount += rejectedCount;
  }

  refuse(reason: string): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}

/** Spans or log records of a delivery. */
export function itemCountOf(signal: Signal, { batches, foreign }: Delivery): number {
  let recordCount = 0;
  for (const batch of batches) recordCount += recordCountOf(batch);
  // A span makes two records, its start and its end; where another bridge sends them one by one, each is half of it.
  let itemCount = signal === 'traces' ? recordCount / 2 : recordCount;
  for (const one of foreign) itemCount += one.recordCount;
  return itemCount;
}
