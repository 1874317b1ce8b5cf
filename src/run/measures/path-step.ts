import type { UnixNano } from '../../record/unix-nano.js';

/** Something in a command that takes time and that others may wait for. */
export interface PathStep {
  /** A node in a phase (NodeEvaluated), a hook (HookProcessed), or a phase without either (PhaseExecuted). */
  readonly kind: 'node' | 'hook' | 'phase';
  /** Of the node or the hook; `null` for a phase. */
  readonly uniqueId: string | null;
  /** Without its prefix, for example `RUN`. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  /** Whether its own end was seen; else its end is that of the node, or of the command. */
  readonly hasEnd: boolean;
  /** The node that the engine reports as the cause of the skip. */
  readonly skipUpstream: string | null;
}
