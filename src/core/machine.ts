import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The memory of the machine and of this process, passed in so that tests decide what is left. */
export interface Machine {
  /** The machine's memory in bytes, or what its control group (a container's limit) may take where that is less. */
  readonly memoryBytes: number;
  /** What Node's own heap may take at most, in bytes; beyond it the process ends. `--max-old-space-size` of Node sets it. */
  readonly maxHeapBytes: number;
  /** What the process takes now, in bytes; costs some 10 µs. */
  residentBytes(): number;
  /** What the objects of the main thread take now, with what they hold outside of the heap, in bytes. */
  objectBytes(): number;
  /** Frees what nothing refers to any more; the process stands still for it, for about 100 ms a gigabyte. */
  collectGarbage(): void;
}

/** The machine that the process runs on. */
export const systemMachine: Machine = {
  // Without a limit Node reports 2^64.
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  maxHeapBytes: getHeapStatistics().heap_size_limit,
  residentBytes: () => process.memoryUsage.rss(),
  objectBytes: () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  collectGarbage: () => findCollector()(),
};

/** Node offers its collector under a flag alone, which may be set while it runs. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return typeof collect === 'function' ? () => void collect() : () => {};
}
