import type { Resource } from '../../record/attributes.js';
import { SpanIdTable } from '../../record/span-id-table.js';
import { EVENT_TYPE } from './event-types.js';
import { type Interval, isBefore, type SpanTree } from './span-tree.js';

/** A span that others name as their parent and that was not seen (yet), as far as its children describe it. */
export interface MissingParent extends Interval {
  readonly resource: Resource;
  /** The phase that its children ran in, where it is the phase's own span. */
  readonly phase: string | undefined;
  /** The node that its children worked for, where they are queries. */
  readonly uniqueId: string | undefined;
}

/** The end of a span. */
interface Child extends Interval {
  readonly eventType: string;
  readonly parentHigh: number;
  readonly parentLow: number;
  readonly uniqueId: string | undefined;
  text(name: string): string | undefined;
}

/** One of them, in a row of its own. */
class Missing implements MissingParent {
  spanHigh = 0;
  spanLow = 0;
  /** Earliest start and latest end of the children. */
  startSeconds = 0;
  startNanos = 0;
  endSeconds = 0;
  endNanos = 0;
  phase: string | undefined = undefined;
  uniqueId: string | undefined = undefined;
  /** Those that were added before it and after it. */
  before: Missing | undefined = undefined;
  after: Missing | undefined = undefined;

  constructor(
    readonly row: number,
    public resource: Resource,
  ) {}
}

/**
 * Parents that are still to come: over OTLP children come first. What is left when the run is over never came: the
 * engine was cut off, or lost it. Remembers as many as the tree remembers spans.
 */
export class MissingParents {
  /** Rows by id. Most spans are missing for a while: their rows are used again. */
  private readonly table = new SpanIdTable();
  private readonly rows: Missing[] = [];
  private readonly free: Missing[] = [];
  private first: Missing | undefined;
  private last: Missing | undefined;
  /** 1 where an id with such an end was ever missed: most spans never were, and need not be looked up. */
  private readonly mayMiss = new Uint8Array(FILTER_SIZE);

  constructor(
    private readonly maxCount: number,
    private readonly tree: SpanTree,
  ) {}

  /** A span ended whose parent may be unknown. */
  seeChild(child: Child, resource: Resource): void {
    const { parentHigh, parentLow, eventType } = child;
    if (parentHigh === 0 && parentLow === 0) return;
    const isRoot = eventType === EVENT_TYPE.invocation || eventType === EVENT_TYPE.process;
    if (isRoot || this.tree.knows(parentHigh, parentLow)) return;
    const row = this.table.getHalves(parentHigh, parentLow);
    const missing = (row === undefined ? undefined : this.rows[row]) ?? this.add(child, resource);
    const { startSeconds, startNanos, endSeconds, endNanos } = child;
    if (isBefore(startSeconds, startNanos, missing.startSeconds, missing.startNanos)) {
      missing.startSeconds = startSeconds;
      missing.startNanos = startNanos;
    }
    if (isBefore(missing.endSeconds, missing.endNanos, endSeconds, endNanos)) {
      missing.endSeconds = endSeconds;
      missing.endNanos = endNanos;
    }
    if (eventType === EVENT_TYPE.nodeEvaluated) missing.phase ??= child.text('phase');
    if (eventType === EVENT_TYPE.queryExecuted) missing.uniqueId ??= child.uniqueId;
  }

  /** A span was seen. */
  arrived(high: number, low: number): void {
    if (this.mayMiss[low & FILTER_MASK] !== 1) return;
    const row = this.table.getHalves(high, low);
    const missing = row === undefined ? undefined : this.rows[row];
    if (missing !== undefined) this.remove(missing);
  }

  /** Those that did not come, in the order in which they were first named. */
  list(): readonly MissingParent[] {
    const all: Missing[] = [];
    for (let one = this.first; one !== undefined; one = one.after) all.push(one);
    return all;
  }

  private add(child: Child, resource: Resource): Missing {
    if (this.table.size >= this.maxCount && this.first !== undefined) this.remove(this.first);
    const { last } = this;
    const missing = this.free.pop() ?? this.newRow(resource);
    missing.spanHigh = child.parentHigh;
    missing.spanLow = child.parentLow;
    missing.startSeconds = child.startSeconds;
    missing.startNanos = child.startNanos;
    missing.endSeconds = child.endSeconds;
    missing.endNanos = child.endNanos;
    missing.phase = undefined;
    missing.uniqueId = undefined;
    missing.resource = resource;
    missing.before = last;
    if (last === undefined) this.first = missing;
    else last.after = missing;
    this.last = missing;
    this.table.setHalves(missing.spanHigh, missing.spanLow, missing.row);
    this.mayMiss[missing.spanLow & FILTER_MASK] = 1;
    return missing;
  }

  private newRow(resource: Resource): Missing {
    const missing = new Missing(this.rows.length, resource);
    this.rows.push(missing);
    return missing;
  }

  private remove(missing: Missing): void {
    const { before, after } = missing;
    this.table.deleteHalves(missing.spanHigh, missing.spanLow);
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
    missing.before = missing.after = undefined;
    this.free.push(missing);
  }
}

const FILTER_SIZE = 4096;
const FILTER_MASK = FILTER_SIZE - 1;
