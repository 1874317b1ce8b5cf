import type { Delivery, RecordConsumer } from '../../src/record/record-batch.js';

/** Keeps deliveries in memory; can be made to fail, or to hold deliveries back until `release()`. */
export class MemoryConsumer implements RecordConsumer {
  readonly deliveries: Delivery[] = [];
  recordCount = 0;
  private failure: Error | undefined;
  private held: (() => void)[] | undefined;
  private waiting: (() => void)[] = [];

  /** Every further delivery fails with this; none any more without one. */
  failWith(error: Error | undefined): void {
    this.failure = error;
  }

  /** From now on deliveries wait. */
  hold(): void {
    this.held = [];
  }

  /** Lets the waiting deliveries, and all later ones, through. */
  release(): void {
    const held = this.held ?? [];
    this.held = undefined;
    for (const letThrough of held) letThrough();
  }

  /** Resolves when the next delivery has come in (held back or not). */
  nextDelivery(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async consume(delivery: Delivery): Promise<void> {
    const waiting = this.waiting;
    this.waiting = [];
    for (const tell of waiting) tell();
    const held = this.held;
    if (held !== undefined) await new Promise<void>((resolve) => held.push(resolve));
    if (this.failure !== undefined) throw this.failure;
    // Pages are lent: what is in them is read before they are given back.
    for (const { records } of delivery.batches) this.recordCount += records.length;
    this.deliveries.push(delivery);
  }
}
