import { MEMORY_PER_BODY_BYTE } from '../component/memory-guard.js';
import { DEFAULT_MAX_IN_FLIGHT_BYTES } from './export-intake.js';

const MIB = 2 ** 20;
/** What the program takes without any request, measured: 75 MiB, and 20 MiB with its exports. */
const IDLE_BYTES = 96 * MIB;
/** A body of this size is always taken. */
const MIN_IN_FLIGHT_BYTES = 4 * MIB;

/**
 * What all bodies in flight may take together, in bytes, so that the process stays below `maxMemoryBytes` when all of
 * them are decoded at once: at most 256 MiB.
 */
export function inFlightLimit(maxMemoryBytes: number): number {
  const bytes = Math.floor((0.9 * maxMemoryBytes - IDLE_BYTES) / MEMORY_PER_BODY_BYTE);
  return Math.min(Math.max(bytes, MIN_IN_FLIGHT_BYTES), DEFAULT_MAX_IN_FLIGHT_BYTES);
}
