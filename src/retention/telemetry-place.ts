import type { TraceId } from '../record/ids.js';
import type { Removal } from '../store/retention-store.js';
import type { RetainedSize } from './retained-kind.js';

/** Where files of traces are: they are counted and removed there. */
export interface TelemetryPlace {
  /** What all of them take, in bytes. */
  totalBytes(signal: AbortSignal): Promise<number>;
  usageOf(traceIds: readonly TraceId[]): Promise<RetainedSize>;
  /** Takes what is to be removed out of the way of whoever lists runs; what comes under its names afterwards is something else. */
  hide(removals: readonly Removal[]): Promise<void>;
  /** Removes files of a trace. False where they cannot be reached from here: they stay noted. May be done again. */
  remove(removal: Removal): Promise<boolean>;
}
