/** How often the heap is looked at. */
const LOOKS = 20;
/** Looks at the beginning that do not count: code and tables are still being made. */
const WARM_UP_LOOKS = 5;
/** Hidden classes are kept for some collections after their last use. */
const COLLECTIONS = 4;

/** Watches what is left of the heap after garbage collection, over a run of so many steps. */
export class HeapWatch {
  private readonly usedMiB: number[] = [];
  private readonly every: number;

  constructor(stepCount: number) {
    this.every = Math.max(1, Math.floor(stepCount / LOOKS));
  }

  /** To be called after each step. @throws Error when Node was started without `--expose-gc` */
  after(step: number): void {
    if ((step + 1) % this.every !== 0) return;
    if (globalThis.gc === undefined) throw new Error('needs node --expose-gc');
    for (let times = 0; times < COLLECTIONS; times++) globalThis.gc();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    this.usedMiB.push((heapUsed + external + arrayBuffers) / 2 ** 20);
  }

  /** From the first looks that count to the last ones. */
  get growthMiB(): number {
    const middle = (list: readonly number[]) => [...list].sort((a, b) => a - b)[list.length >> 1] ?? 0;
    const counted = this.usedMiB.slice(WARM_UP_LOOKS);
    return middle(counted.slice(-5)) - middle(counted.slice(0, 5));
  }

  toString(): string {
    return `MiB after garbage collection: ${this.usedMiB.map((used) => used.toFixed(0)).join(' ')}`;
  }
}
