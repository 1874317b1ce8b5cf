import type { Machine } from '../core/guard.js';

const MIB = 2 ** 20;
/** Less than this is no use, in bytes; a small machine gives more than a quarter for it. */
const MIN_BYTES = 384 * MIB;
const MAX_PART = 0.75;

/**
 * The default of `max-memory`: a quarter of the memory of the machine or container, in whole MiB. At least 384 MiB where
 * that leaves a quarter to others, and no more than Node's own heap may take: beyond that the process ends.
 */
export function defaultMaxMemoryBytes({ memoryBytes, maxHeapBytes }: Machine): number {
  const bytes = Math.max(memoryBytes / 4, Math.min(MIN_BYTES, memoryBytes * MAX_PART));
  return Math.floor(Math.min(bytes, maxHeapBytes) / MIB) * MIB;
}
