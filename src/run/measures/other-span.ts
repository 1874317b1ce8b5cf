import type { UnixNano } from '../../record/unix-nano.js';
import type { NodeVerdict } from '../run-summary.js';

/** A hook's span (HookProcessed) or a phase's (PhaseExecuted), as far as known. */
export interface OtherSpan {
  readonly kind: 'hook' | 'phase';
  /** Of the hook; `null` for a phase. */
  readonly uniqueId: string | null;
  /** Without its prefix; empty where the span names none. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where it has not ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /** The verdict of a hook; `null` for a phase. */
  readonly verdict: NodeVerdict | null;
}
