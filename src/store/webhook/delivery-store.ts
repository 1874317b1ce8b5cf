/** An event for a subscription, with the log of the attempts to deliver it. */
export interface OldDelivery {
  /** The order in which events came to be. */
  readonly seq: number;
  readonly createdUnixMs: number;
  /** Of what it says and of what was sent and answered, in bytes. */
  readonly sizeBytes: number;
}

/** What is kept of deliveries that are over. */
export interface DeliveryStore {
  /** What all of them take, in bytes. */
  totalBytes(): Promise<number>;
  /**
   * Deliveries that came to be up to then, oldest first.
   * @param waitingUntilUnixMs those that are still to be delivered only if they are as old as this
   * @param after the last one of the page before
   */
  listOld(
    untilUnixMs: number,
    waitingUntilUnixMs: number,
    after: OldDelivery | null,
    limit: number,
  ): Promise<readonly OldDelivery[]>;
  /** Removes deliveries with their attempts. */
  remove(deliveries: readonly OldDelivery[]): Promise<void>;
}
