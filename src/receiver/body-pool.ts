/** Buffers that are kept for the next bodies, and how large one that is kept may be. */
const MAX_KEPT = 8;
const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** Sizes are rounded up to this, so that bodies of about the same size fit each other's buffers. */
const STEP_BYTES = 64 * 1024;

/**
 * Buffers for bodies, which go around: one that is allocated for each body is memory that the system has to clear and the
 * collector to find again, some hundred megabytes between two collections.
 */
export class BodyPool {
  private readonly free: Buffer[] = [];

  /** A buffer of at least so many bytes, with anything in it. */
  take(byteCount: number): Buffer {
    const index = this.free.findIndex(({ length }) => length >= byteCount);
    const [found] = index < 0 ? [] : this.free.splice(index, 1);
    return found ?? Buffer.allocUnsafeSlow(Math.ceil(byteCount / STEP_BYTES) * STEP_BYTES);
  }

  /** @param buffer one that was taken, which nobody reads any more */
  giveBack(buffer: Buffer): void {
    if (buffer.length > MAX_KEPT_BYTES) return;
    if (this.free.length >= MAX_KEPT) this.free.shift();
    this.free.push(buffer);
  }
}
