import { grown } from '../../core/bytes.js';
import type { Resource } from '../../record/attributes.js';
import { SpanIdTable } from '../../record/span-id-table.js';
import { EVENT_TYPE } from './exported-names.js';
import { type IdHalves, type Interval, isBefore, type MappedRecord, type StartLine } from './mapped-record.js';

const MIN_ROWS = 1024;
/** Numbers of a span's row: its id, its parent's, and that of the node's NodeProcessed span, which a NodeEvaluated span links to; both halves 0 for none. */
const ID = 0;
const PARENT = 2;
const PROCESSED = 4;
const ROW = 6;
const OPEN = 1;
const BUFFERED = 2;
const SENT = 3;
const STATE = 3;
const IS_INVOCATION = 4;
const IS_ROOT = 8;

/**
 * A run's spans by id: who is whose parent and what was sent. Remembers the latest ones, see `maxRememberedSpans`. Kept
 * in arrays of numbers, 25 bytes a span and 24 to 48 for finding it: as objects in a Map they took 300.
 */
export class SpanTree {
  private readonly indexById = new SpanIdTable();
  private count = 0;
  /** Invocation spans that were seen. */
  invocationCount = 0;
  private rows = new Int32Array(ROW * MIN_ROWS);
  private flags = new Uint8Array(MIN_ROWS);
  private readonly starts: (StartLine | undefined)[] = [];

  constructor(private readonly maxRememberedSpans: number) {}

  /** A start was read. @returns false, and does nothing, when the span is known already. */
  begin(span: MappedRecord, start: StartLine): boolean {
    if (this.indexOf(span.spanHigh, span.spanLow) !== undefined) return false;
    this.starts[this.add(span, OPEN)] = start;
    return true;
  }

  /** An end was read. @returns false when the span had ended before. */
  end(span: MappedRecord): boolean {
    const index = this.indexOf(span.spanHigh, span.spanLow);
    if (index === undefined) {
      this.add(span, BUFFERED);
      return true;
    }
    if (this.stateAt(index) !== OPEN) return false;
    this.setState(index, BUFFERED);
    this.closeStart(index);
    if (!this.hasProcessed(index)) this.setProcessed(index, span);
    return true;
  }

  sent(high: number, low: number): void {
    const index = this.indexOf(high, low);
    if (index !== undefined) this.setState(index, SENT);
  }

  knows(high: number, low: number): boolean {
    return this.indexOf(high, low) !== undefined;
  }

  isSent(high: number, low: number): boolean {
    const index = this.indexOf(high, low);
    return index !== undefined && this.stateAt(index) === SENT;
  }

  /** The nearest ancestor that was not sent yet; over OTLP that is often one that did not come yet. */
  nearestUnsentAncestor(high: number, low: number): IdHalves | undefined {
    let highest = this.indexOf(high, low);
    if (highest === undefined) return undefined;
    let depth = 0;
    for (let index = this.parentOf(highest); index !== undefined; index = this.parentOf(index)) {
      if (depth++ === MAX_DEPTH) break;
      if (this.stateAt(index) !== SENT) return this.idAt(index, ID);
      highest = index;
    }
    if (((this.flags[highest] as number) & IS_ROOT) !== 0) return undefined;
    const above = this.idAt(highest, PARENT);
    return above === undefined || this.isSent(above[0], above[1]) ? undefined : above;
  }

  /**
   * Where it stands which node a span works for, as far as its ancestors are known: the index of the span that has its own NodeProcessed
   * span or links to it. Good until the next span is added.
   */
  nodeIndexOf(high: number, low: number): number | undefined {
    let index = this.indexOf(high, low);
    for (let depth = 0; index !== undefined && depth <= MAX_DEPTH; depth++) {
      if (this.hasProcessed(index)) return index;
      index = this.parentOf(index);
    }
    return undefined;
  }

  /** Returns whether two such indices are of the same node. */
  isSameNode(index: number, other: number): boolean {
    const { rows } = this;
    const [one, two] = [ROW * index + PROCESSED, ROW * other + PROCESSED];
    return rows[one] === rows[two] && rows[one + 1] === rows[two + 1];
  }

  /** The NodeProcessed span of the node that a span works for. */
  processedSpanOf(high: number, low: number): IdHalves | undefined {
    const index = this.nodeIndexOf(high, low);
    return index === undefined ? undefined : this.idAt(index, PROCESSED);
  }

  /** The invocation span above a span, as far as its ancestors are known. */
  invocationOf(high: number, low: number): IdHalves | undefined {
    const start = this.indexOf(high, low);
    let index = start === undefined ? undefined : this.parentOf(start);
    for (let depth = 0; index !== undefined && depth < MAX_DEPTH; depth++) {
      if (((this.flags[index] as number) & IS_INVOCATION) !== 0) return this.idAt(index, ID);
      index = this.parentOf(index);
    }
    return undefined;
  }

  /** Starts of spans that have not ended, in the order of the log. */
  openStarts(): readonly StartLine[] {
    const starts: StartLine[] = [];
    for (let number = Math.max(0, this.count - this.maxRememberedSpans); number < this.count; number++) {
      const start = this.starts[number % this.maxRememberedSpans];
      if (start !== undefined) starts.push(start);
    }
    return starts;
  }

  /** Returns the index of a span's parent; `undefined` where it has none that is known. */
  private parentOf(index: number): number | undefined {
    const high = this.rows[ROW * index + PARENT] as number;
    const low = this.rows[ROW * index + PARENT + 1] as number;
    return high === 0 && low === 0 ? undefined : this.indexOf(high, low);
  }

  private indexOf(high: number, low: number): number | undefined {
    return this.indexById.getHalves(high, low);
  }

  /** Remembers a span, replacing the oldest one when there are too many. */
  private add(span: MappedRecord, state: number): number {
    const index = this.count++ % this.maxRememberedSpans;
    if (index >= this.flags.length) {
      this.rows = grown(this.rows);
      this.flags = grown(this.flags);
    }
    if (this.count > this.maxRememberedSpans) this.forget(index);
    this.setId(index, ID, span.spanHigh, span.spanLow);
    this.setId(index, PARENT, span.parentHigh, span.parentLow);
    this.setId(index, PROCESSED, 0, 0);
    this.setProcessed(index, span);
    const isInvocation = span.eventType === EVENT_TYPE.invocation;
    const isRoot = isInvocation || span.eventType === EVENT_TYPE.process;
    if (isInvocation) this.invocationCount += 1;
    this.flags[index] = state | (isInvocation ? IS_INVOCATION : 0) | (isRoot ? IS_ROOT : 0);
    this.indexById.setHalves(span.spanHigh, span.spanLow, index);
    return index;
  }

  private forget(index: number): void {
    this.closeStart(index);
    this.indexById.deleteHalves(this.rows[ROW * index] as number, this.rows[ROW * index + 1] as number);
  }

  /** A NodeProcessed span is its own; a NodeEvaluated span links to it first (seen in every run of both engine builds). */
  private setProcessed(index: number, span: MappedRecord): void {
    if (span.eventType === EVENT_TYPE.nodeProcessed) this.setId(index, PROCESSED, span.spanHigh, span.spanLow);
    else if (span.eventType === EVENT_TYPE.nodeEvaluated) this.setId(index, PROCESSED, span.linkHigh, span.linkLow);
  }

  private hasProcessed(index: number): boolean {
    const at = ROW * index + PROCESSED;
    return ((this.rows[at] as number) | (this.rows[at + 1] as number)) !== 0;
  }

  private closeStart(index: number): void {
    if (this.starts[index] !== undefined) this.starts[index] = undefined;
  }

  private stateAt(index: number): number {
    return (this.flags[index] ?? 0) & STATE;
  }

  private setState(index: number, state: number): void {
    this.flags[index] = ((this.flags[index] ?? 0) & ~STATE) | state;
  }

  private setId(index: number, which: number, high: number, low: number): void {
    this.rows[ROW * index + which] = high;
    this.rows[ROW * index + which + 1] = low;
  }

  /** One of the ids in a span's row; `undefined` for none. */
  private idAt(index: number, which: number): IdHalves | undefined {
    const at = ROW * index + which;
    const id: IdHalves = [this.rows[at] as number, this.rows[at + 1] as number];
    return id[0] === 0 && id[1] === 0 ? undefined : id;
  }
}

/** Deepest chain of ancestors that is climbed, so that a loop of parents ends. */
const MAX_DEPTH = 256;

/** What the ends of spans say of their parents. */
type Child = Omit<MappedRecord, 'isEnd' | 'linkHigh' | 'linkLow' | 'interruption'>;

/** A span that others name as their parent and that was not seen (yet), as far as its children describe it. */
export class MissingParent implements Interval {
  spanHigh = 0;
  spanLow = 0;
  /** Earliest start and latest end of the children. */
  startSeconds = 0;
  startNanos = 0;
  endSeconds = 0;
  endNanos = 0;
  /** The phase that its children ran in, where it is the phase's own span. */
  phase: string | undefined = undefined;
  /** The node that its children worked for, where they are queries. */
  uniqueId: string | undefined = undefined;
  /** Those that were added before it and after it. */
  before: MissingParent | undefined = undefined;
  after: MissingParent | undefined = undefined;

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
  private readonly rows: MissingParent[] = [];
  private readonly free: MissingParent[] = [];
  private first: MissingParent | undefined;
  private last: MissingParent | undefined;
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
    const all: MissingParent[] = [];
    for (let one = this.first; one !== undefined; one = one.after) all.push(one);
    return all;
  }

  private add(child: Child, resource: Resource): MissingParent {
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

  private newRow(resource: Resource): MissingParent {
    const missing = new MissingParent(this.rows.length, resource);
    this.rows.push(missing);
    return missing;
  }

  private remove(missing: MissingParent): void {
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
