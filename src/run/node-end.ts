import type { SpanEnd } from '../record/telemetry-record.js';
import type { UnixNano } from '../record/unix-nano.js';
import { nodeVerdictOf } from './node-outcome.js';
import type { NodeVerdict } from './run-summary.js';

/** What one span's end said of a node. */
export interface NodeEnd {
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  /** Verdicts without an interruption, and with the weak sign of one. */
  readonly plain: NodeVerdict;
  readonly afterCanceledQuery: NodeVerdict;
  /** Whether it was the phase that runs the node, after which there is none. */
  readonly isLastPhase: boolean;
  /** `in_selection` of NodeProcessed, which is left out where it is false; NodeEvaluated has none. */
  readonly isSelected: boolean;
}

/** What is read of the end of a node's span. */
export type NodeSpanEnd = Pick<SpanEnd, 'attributes' | 'status' | 'startTimeUnixNano' | 'endTimeUnixNano'>;

/** Reads the end of a NodeProcessed or NodeEvaluated span. */
export function nodeEndOf(end: NodeSpanEnd): NodeEnd {
  const phase = end.attributes.text('phase')?.toUpperCase() ?? '';
  return {
    startTimeUnixNano: end.startTimeUnixNano,
    endTimeUnixNano: end.endTimeUnixNano,
    plain: nodeVerdictOf(end, 'none'),
    afterCanceledQuery: nodeVerdictOf(end, 'query'),
    isLastPhase: phase === 'RUN' || phase === 'EXECUTION_PHASE_RUN',
    isSelected: isSelected(end),
  };
}

/** Whether a NodeProcessed record says that its node was selected. */
export function isSelected({ attributes }: Pick<SpanEnd, 'attributes'>): boolean {
  return attributes.get('in_selection') === true;
}
