/** Memory that bodies in flight may take together, in bytes. What does not fit is not waited for: the sender is told. */
export class ByteBudget {
  private used = 0;

  constructor(readonly maxBytes: number) {}

  get usedBytes(): number {
    return this.used;
  }

  /** Takes a part of the budget; `undefined` when that much is not left. */
  reserve(bytes: number): Reservation | undefined {
    const reservation = new Reservation((more) => this.take(more));
    return reservation.growTo(bytes) ? reservation : undefined;
  }

  private take(bytes: number): boolean {
    if (bytes > 0 && this.used + bytes > this.maxBytes) return false;
    this.used += bytes;
    return true;
  }
}

/** One body's part of the budget. */
export class Reservation {
  private held = 0;

  /** @param take adds to the budget's use (or, negative, gives back); false when there is no room. */
  constructor(private readonly take: (bytes: number) => boolean) {}

  /** Makes sure that this many bytes are held; false, and no change, when the budget has no room for them. */
  growTo(bytes: number): boolean {
    if (bytes <= this.held) return true;
    if (!this.take(bytes - this.held)) return false;
    this.held = bytes;
    return true;
  }

  /** Gives everything back; doing so twice does nothing. */
  release(): void {
    this.take(-this.held);
    this.held = 0;
  }
}
