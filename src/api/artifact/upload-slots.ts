/** Uploads that are read at a time: to a bucket, each takes up to 16 MiB of memory. Others wait, unread, on their connections. */
const MAX_AT_A_TIME = 6;

/** Lets in so many at a time, in the order in which they came. */
export class UploadSlots {
  private freeCount = MAX_AT_A_TIME;
  private readonly waiting: (() => void)[] = [];

  /** Runs what it is given when there is a place for it. */
  async run<T>(action: () => Promise<T>): Promise<T> {
    if (this.freeCount > 0) this.freeCount -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await action();
    } finally {
      const next = this.waiting.shift();
      // Its place goes on to the next one.
      if (next === undefined) this.freeCount += 1;
      else next();
    }
  }
}
