/** The most attempts at a time for one subscription. */
const MAX_CONCURRENCY = 8;

/**
 * How many attempts one subscription may have under way: one at first and after a failure, more with each success. So an
 * endpoint that does not answer holds one connection, and a fast one is not held up by its own events.
 */
export class SubscriptionLane {
  inFlightCount = 0;
  /** A claim is under way. */
  isClaiming = false;
  private limit = 1;

  /**
   * @param isSuspect whether its last delivery has failed
   * @param readMs when the subscription was read, in monotonic milliseconds
   */
  constructor(
    public isSuspect: boolean,
    public readMs: number,
  ) {}

  /** Attempts that may begin now. */
  get freeCount(): number {
    return Math.max(0, this.limit - this.inFlightCount);
  }

  get isIdle(): boolean {
    return this.inFlightCount === 0 && !this.isClaiming;
  }

  noteEnd(isDelivered: boolean): void {
    this.isSuspect = !isDelivered;
    this.limit = isDelivered ? Math.min(this.limit * 2, MAX_CONCURRENCY) : 1;
  }
}
