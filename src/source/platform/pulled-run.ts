import type { Reject } from '../../files/record-source.js';
import type { TraceId } from '../../record/ids.js';
import type { PlatformRun, PlatformStep } from './platform-run.js';

/** What became of asking for a hosted run. */
export interface PulledRun {
  readonly run: PlatformRun;
  /** In order; empty where the run is not complete yet. */
  readonly steps: readonly PulledStep[];
  /** Whether asking again later would give no more. */
  readonly isFinal: boolean;
}

/** What became of a step's telemetry. */
export interface PulledStep {
  readonly step: PlatformStep;
  /**
   * `taken`: its records are durable. `none`: it has no telemetry. `known`: it was taken before. `broken`: its file
   * cannot be read, or not to its end. `failed`: it could not be downloaded this time.
   */
  readonly outcome: 'taken' | 'none' | 'known' | 'broken' | 'failed';
  readonly recordCount: number;
  readonly traceIds: readonly TraceId[];
  readonly rejectCount: number;
  /** The first of them. */
  readonly rejects: readonly Reject[];
  /** Why it is broken or failed, in a sentence or two; `null` otherwise. */
  readonly reason: string | null;
}
