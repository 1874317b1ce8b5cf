import type { Resource } from '../../record/attributes.js';
import { EVENT_TYPE } from './event-types.js';
import { type Interval, isBefore, SpanIdMap, type SpanTree } from './span-tree.js';

/** A span that others name as their parent and that was not seen (yet), as far as its children describe it. */
export interface MissingParent extends Interval {
  readonly resource: Resource;
  /** Earliest start and latest end of the children. */
  startSeconds: number;
  startNanos: number;
  endSeconds: number;
  endNanos: number;
  /** The phase that its children ran in, where it is the phase's own span. */
  phase: string | undefined;
  /** The node that its children worked for, where they are queries. */
  uniqueId: string | undefined;
}

/** The end of a span. */
interface Child extends Interval {
  readonly eventType: string;
  readonly parentHigh: number;
  readonly parentLow: number;
  text(name: string): string | undefined;
}

/**
 * Parents that are still to come: over OTLP children come first. What is left when the run is over never came: the
 * engine was cut off, or lost it. Remembers as many as the tree remembers spans.
 */
export class MissingParents {
  private readonly byId: SpanIdMap<MissingParent>;
  /** 1 where an id with such an end was ever missed: most spans never were, and need not be looked up. */
  private readonly mayMiss = new Uint8Array(FILTER_SIZE);

  constructor(
    maxCount: number,
    private readonly tree: SpanTree,
  ) {
    this.byId = new SpanIdMap(maxCount);
  }

  /** A span ended whose parent may be unknown. */
  seeChild(child: Child, resource: Resource): void {
    const { parentHigh: spanHigh, parentLow: spanLow, eventType } = child;
    if (spanHigh === 0 && spanLow === 0) return;
    const isRoot = eventType === EVENT_TYPE.invocation || eventType === EVENT_TYPE.process;
    if (isRoot || this.tree.knows(spanHigh, spanLow)) return;
    const known = this.byId.get(spanHigh, spanLow);
    const phase = eventType === EVENT_TYPE.nodeEvaluated ? child.text('phase') : undefined;
    const uniqueId = eventType === EVENT_TYPE.queryExecuted ? child.text('unique_id') : undefined;
    const { startSeconds, startNanos, endSeconds, endNanos } = child;
    if (known === undefined) {
      const times = { startSeconds, startNanos, endSeconds, endNanos };
      this.byId.add(spanHigh, spanLow, { spanHigh, spanLow, resource, ...times, phase, uniqueId });
      this.mayMiss[spanLow & FILTER_MASK] = 1;
      return;
    }
    if (isBefore(startSeconds, startNanos, known.startSeconds, known.startNanos)) {
      known.startSeconds = startSeconds;
      known.startNanos = startNanos;
    }
    if (isBefore(known.endSeconds, known.endNanos, endSeconds, endNanos)) {
      known.endSeconds = endSeconds;
      known.endNanos = endNanos;
    }
    known.phase ??= phase;
    known.uniqueId ??= uniqueId;
  }

  /** A span was seen. */
  arrived(high: number, low: number): void {
    if (this.mayMiss[low & FILTER_MASK] === 1) this.byId.delete(high, low);
  }

  /** Those that did not come. */
  list(): readonly MissingParent[] {
    return Array.from(this.byId, ([, missing]) => missing);
  }
}

const FILTER_SIZE = 4096;
const FILTER_MASK = FILTER_SIZE - 1;
