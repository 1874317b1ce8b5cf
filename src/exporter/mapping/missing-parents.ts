import type { SpanId } from '../../record/ids.js';
import type { Resource } from '../../record/resource.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { BoundedMap } from './bounded-map.js';
import { EVENT_TYPE } from './event-types.js';
import { spanIdOf } from './id-halves.js';
import type { SpanSight } from './span-sight.js';
import type { SpanTree } from './span-tree.js';

/** A span that others name as their parent and that was not seen (yet), as far as its children tell. */
export interface MissingParent {
  readonly spanId: SpanId;
  readonly resource: Resource;
  /** Earliest start and latest end of the children. */
  startTimeUnixNano: UnixNano;
  endTimeUnixNano: UnixNano;
  /** The phase that its children ran in, where it is the phase's own span. */
  phase: string | undefined;
  /** The node that its children worked for, where they are queries. */
  uniqueId: string | undefined;
}

/**
 * Parents that are still to come: over OTLP children come first. What is left when the run is over never came: the
 * engine was cut off, or lost it. Remembers as many as the tree remembers spans.
 */
export class MissingParents {
  private readonly byId: BoundedMap<SpanId, MissingParent>;
  /** 1 where an id with such an end was ever missed: most spans never were, and need not be looked up. */
  private readonly mayMiss = new Uint8Array(FILTER_SIZE);

  constructor(
    maxCount: number,
    private readonly tree: SpanTree,
  ) {
    this.byId = new BoundedMap(maxCount);
  }

  /** A span ended whose parent may be unknown. */
  seeChild(child: SpanSight, resource: Resource): void {
    const { parentHigh, parentLow, eventType } = child;
    if (parentHigh === 0 && parentLow === 0) return;
    const isRoot = eventType === EVENT_TYPE.invocation || eventType === EVENT_TYPE.process;
    if (isRoot || this.tree.knows(parentHigh, parentLow)) return;
    const parentSpanId = spanIdOf(parentHigh, parentLow);
    const { startTimeUnixNano, endTimeUnixNano } = child;
    const known = this.byId.get(parentSpanId);
    const phase = eventType === EVENT_TYPE.nodeEvaluated ? child.text('phase') : undefined;
    const uniqueId = eventType === EVENT_TYPE.queryExecuted ? child.text('unique_id') : undefined;
    if (known === undefined) {
      const missing = { spanId: parentSpanId, resource, startTimeUnixNano, endTimeUnixNano, phase, uniqueId };
      this.byId.set(parentSpanId, missing);
      this.mayMiss[parentLow & FILTER_MASK] = 1;
      return;
    }
    if (startTimeUnixNano < known.startTimeUnixNano) known.startTimeUnixNano = startTimeUnixNano;
    if (endTimeUnixNano > known.endTimeUnixNano) known.endTimeUnixNano = endTimeUnixNano;
    known.phase ??= phase;
    known.uniqueId ??= uniqueId;
  }

  /** A span was seen. */
  arrived(high: number, low: number): void {
    if (this.mayMiss[low & FILTER_MASK] === 1) this.byId.delete(spanIdOf(high, low));
  }

  /** Those that did not come. */
  list(): readonly MissingParent[] {
    return [...this.byId.values()];
  }
}

const FILTER_SIZE = 4096;
const FILTER_MASK = FILTER_SIZE - 1;
