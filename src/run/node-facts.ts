import type { SpanEnd } from '../record/telemetry-record.js';
import type { UnixNano } from '../record/unix-nano.js';
import { type Interruption, type InterruptionSign, nodeVerdictOf } from './node-outcome.js';
import type { NodeVerdict } from './run-summary.js';

/**
 * The state of one node of an invocation, about 200 bytes: records are added in any order, and two halves
 * merge into the same result.
 */
export class NodeFacts {
  /** The end of its NodeProcessed span; the latest where there are several. */
  private processed: NodeEnd | null = null;
  /** The end of its NodeEvaluated span of phase RUN, or of one that failed: all there is where NodeProcessed never ended. */
  private evaluated: NodeEnd | null = null;
  private interruption: InterruptionSign = 'none';
  private selected: boolean | null = null;

  /** The start of its NodeProcessed span. */
  addProcessedStart(isSelected: boolean): void {
    this.selected = this.selected || isSelected;
  }

  addProcessedEnd(end: NodeEnd): void {
    this.selected = this.selected || end.isSelected;
    this.processed = later(this.processed, end);
  }

  addEvaluatedEnd(end: NodeEnd): void {
    if (end.isLastPhase || end.plain === 'error') this.evaluated = later(this.evaluated, end);
  }

  addInterruption(kind: Interruption['kind']): void {
    this.interruption = stronger(this.interruption, kind === 'query' ? 'query' : 'hard');
  }

  merge(other: NodeFacts): void {
    if (other.processed !== null) this.processed = later(this.processed, other.processed);
    if (other.evaluated !== null) this.evaluated = later(this.evaluated, other.evaluated);
    this.interruption = stronger(this.interruption, other.interruption);
    this.selected = this.selected || (other.selected ?? this.selected);
  }

  /** Whether the command was asked for it; `null` where no NodeProcessed span was seen. */
  get isSelected(): boolean | null {
    return this.selected;
  }

  get verdict(): NodeVerdict {
    const end = this.processed ?? this.evaluated;
    if (end === null) return nodeVerdictOf(null, this.interruption);
    if (this.interruption === 'hard') return 'canceled';
    return this.interruption === 'query' ? end.afterCanceledQuery : end.plain;
  }

  /** When the node was found to have failed; `null` where it did not, or was cut short. */
  get failureTimeUnixNano(): UnixNano | null {
    const { verdict } = this;
    if (verdict !== 'failed' && verdict !== 'error') return null;
    return (this.processed ?? this.evaluated)?.endTimeUnixNano ?? null;
  }

  /** Whether NodeProcessed ended, and not around these times: they belong to the node in another invocation. */
  excludes(startTimeUnixNano: UnixNano, endTimeUnixNano: UnixNano): boolean {
    if (this.processed === null) return false;
    return startTimeUnixNano < this.processed.startTimeUnixNano || endTimeUnixNano > this.processed.endTimeUnixNano;
  }
}

function later(a: NodeEnd | null, b: NodeEnd): NodeEnd {
  if (a === null || b.endTimeUnixNano > a.endTimeUnixNano) return b;
  if (b.endTimeUnixNano < a.endTimeUnixNano) return a;
  return b.plain > a.plain ? b : a;
}

const STRENGTH: Readonly<Record<InterruptionSign, number>> = { none: 0, query: 1, hard: 2 };

function stronger(a: InterruptionSign, b: InterruptionSign): InterruptionSign {
  return STRENGTH[a] >= STRENGTH[b] ? a : b;
}

/** The content of one span's end about a node. */
export interface NodeEnd {
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  /** Verdicts without an interruption, and with the weak sign of one. */
  readonly plain: NodeVerdict;
  readonly afterCanceledQuery: NodeVerdict;
  /** Whether it was the phase that executes the node, which is its last one. */
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

/** Whether a NodeProcessed record marks its node as selected. */
export function isSelected({ attributes }: Pick<SpanEnd, 'attributes'>): boolean {
  return attributes.get('in_selection') === true;
}
