import type { HrTime } from '@opentelemetry/api';
import { grown } from '../../core/bytes.js';
import type { Resource } from '../../record/attributes.js';
import { SpanIdTable } from '../../record/span-id-table.js';
import type { SpanId, UnixNano } from '../../record/telemetry-record.js';
import { EVENT_TYPE } from './exported-names.js';

/** A span's start, kept while the span is open. */
export interface OpenStart {
  /** Reset when the span ends: the start is no longer needed then. */
  isOpen: boolean;
}

/** What the tree is to remember of a span; ids as two 32-bit halves, both 0 for none. */
export interface SeenSpan {
  readonly spanHigh: number;
  readonly spanLow: number;
  readonly parentHigh: number;
  readonly parentLow: number;
  readonly eventType: string;
  /** The span that it links to first. */
  readonly linkHigh: number;
  readonly linkLow: number;
}

const MIN_PLACES = 1024;
const OPEN = 1;
const HELD = 2;
const SENT = 3;
const STATE = 3;
const IS_INVOCATION = 4;
const IS_ROOT = 8;

/**
 * A run's spans by id: who is whose parent and what was sent. Remembers the latest ones, see `maxRememberedSpans`. Kept
 * in arrays of numbers, 25 bytes a span and 24 to 48 for finding it: as objects in a Map they took 300.
 */
export class SpanTree<Start extends OpenStart = OpenStart> {
  private readonly places = new SpanIdTable();
  private count = 0;
  private high = new Int32Array(MIN_PLACES);
  private low = new Int32Array(MIN_PLACES);
  private parentHigh = new Int32Array(MIN_PLACES);
  private parentLow = new Int32Array(MIN_PLACES);
  /** The node's own NodeProcessed span, which a NodeEvaluated span links to; both 0 for none. */
  private processedHigh = new Int32Array(MIN_PLACES);
  private processedLow = new Int32Array(MIN_PLACES);
  private flags = new Uint8Array(MIN_PLACES);
  private readonly starts: (Start | undefined)[] = [];

  constructor(private readonly maxRememberedSpans: number) {}

  /** A start was read. @returns false, and does nothing, when the span is known already. */
  begin(span: SeenSpan, start: Start): boolean {
    if (this.placeOf(span.spanHigh, span.spanLow) !== undefined) return false;
    this.starts[this.add(span, OPEN)] = start;
    return true;
  }

  /** An end was read. @returns false when the span had ended before. */
  end(span: SeenSpan): boolean {
    const place = this.placeOf(span.spanHigh, span.spanLow);
    if (place === undefined) {
      this.add(span, HELD);
      return true;
    }
    if (this.stateAt(place) !== OPEN) return false;
    this.setState(place, HELD);
    this.closeStart(place);
    if (this.processedHigh[place] === 0 && this.processedLow[place] === 0) this.setProcessed(place, span);
    return true;
  }

  sent(high: number, low: number): void {
    const place = this.placeOf(high, low);
    if (place !== undefined) this.setState(place, SENT);
  }

  knows(high: number, low: number): boolean {
    return this.placeOf(high, low) !== undefined;
  }

  isSent(high: number, low: number): boolean {
    const place = this.placeOf(high, low);
    return place !== undefined && this.stateAt(place) === SENT;
  }

  /** The nearest ancestor that was not sent yet; over OTLP that is often one that did not come yet. */
  nearestUnsentAncestor(high: number, low: number): IdHalves | undefined {
    let highest = this.placeOf(high, low);
    if (highest === undefined) return undefined;
    let depth = 0;
    for (let place = this.parentOf(highest); place !== undefined; place = this.parentOf(place)) {
      if (depth++ === MAX_DEPTH) break;
      if (this.stateAt(place) !== SENT) return this.idAt(place);
      highest = place;
    }
    if (((this.flags[highest] as number) & IS_ROOT) !== 0) return undefined;
    const above = halves(this.parentHigh, this.parentLow, highest);
    return above === undefined || this.isSent(above[0], above[1]) ? undefined : above;
  }

  /**
   * Where it stands which node a span works for, as far as its ancestors are known: the place of the span that has its own NodeProcessed
   * span or links to it. Good until the next span is added.
   */
  nodePlaceOf(high: number, low: number): number | undefined {
    let place = this.placeOf(high, low);
    for (let depth = 0; place !== undefined && depth <= MAX_DEPTH; depth++) {
      if (((this.processedHigh[place] as number) | (this.processedLow[place] as number)) !== 0) return place;
      place = this.parentOf(place);
    }
    return undefined;
  }

  /** Whether two such places are of the same node. */
  isSameNode(place: number, other: number): boolean {
    const { processedHigh, processedLow } = this;
    return processedHigh[place] === processedHigh[other] && processedLow[place] === processedLow[other];
  }

  /** The NodeProcessed span of the node that a span works for. */
  processedSpanOf(high: number, low: number): IdHalves | undefined {
    const place = this.nodePlaceOf(high, low);
    return place === undefined ? undefined : halves(this.processedHigh, this.processedLow, place);
  }

  /** The invocation span above a span, as far as its ancestors are known. */
  invocationOf(high: number, low: number): IdHalves | undefined {
    const own = this.placeOf(high, low);
    let place = own === undefined ? undefined : this.parentOf(own);
    for (let depth = 0; place !== undefined && depth < MAX_DEPTH; depth++) {
      if (((this.flags[place] as number) & IS_INVOCATION) !== 0) return this.idAt(place);
      place = this.parentOf(place);
    }
    return undefined;
  }

  /** Starts of spans that have not ended, in the order of the log. */
  openStarts(): readonly Start[] {
    const starts: Start[] = [];
    for (let number = Math.max(0, this.count - this.maxRememberedSpans); number < this.count; number++) {
      const start = this.starts[number % this.maxRememberedSpans];
      if (start !== undefined) starts.push(start);
    }
    return starts;
  }

  /** The place of a span's parent; `undefined` where it has none that is known. */
  private parentOf(place: number): number | undefined {
    const high = this.parentHigh[place] as number;
    const low = this.parentLow[place] as number;
    return high === 0 && low === 0 ? undefined : this.placeOf(high, low);
  }

  private placeOf(high: number, low: number): number | undefined {
    return this.places.getHalves(high, low);
  }

  /** Remembers a span, in the place of the oldest one when there are too many. */
  private add(span: SeenSpan, state: number): number {
    const place = this.count++ % this.maxRememberedSpans;
    if (place >= this.high.length) this.grow();
    if (this.count > this.maxRememberedSpans) this.forget(place);
    this.high[place] = span.spanHigh;
    this.low[place] = span.spanLow;
    this.parentHigh[place] = span.parentHigh;
    this.parentLow[place] = span.parentLow;
    this.processedHigh[place] = this.processedLow[place] = 0;
    this.setProcessed(place, span);
    const isInvocation = span.eventType === EVENT_TYPE.invocation;
    const isRoot = isInvocation || span.eventType === EVENT_TYPE.process;
    this.flags[place] = state | (isInvocation ? IS_INVOCATION : 0) | (isRoot ? IS_ROOT : 0);
    this.places.setHalves(span.spanHigh, span.spanLow, place);
    return place;
  }

  private forget(place: number): void {
    this.closeStart(place);
    this.places.deleteHalves(this.high[place] as number, this.low[place] as number);
  }

  private grow(): void {
    this.high = grown(this.high);
    this.low = grown(this.low);
    this.parentHigh = grown(this.parentHigh);
    this.parentLow = grown(this.parentLow);
    this.processedHigh = grown(this.processedHigh);
    this.processedLow = grown(this.processedLow);
    this.flags = grown(this.flags);
  }

  /** A NodeProcessed span is its own; a NodeEvaluated span links to it first (seen in every run of both engine builds). */
  private setProcessed(place: number, span: SeenSpan): void {
    if (span.eventType === EVENT_TYPE.nodeProcessed) {
      this.processedHigh[place] = span.spanHigh;
      this.processedLow[place] = span.spanLow;
    } else if (span.eventType === EVENT_TYPE.nodeEvaluated) {
      this.processedHigh[place] = span.linkHigh;
      this.processedLow[place] = span.linkLow;
    }
  }

  private closeStart(place: number): void {
    const start = this.starts[place];
    if (start === undefined) return;
    start.isOpen = false;
    this.starts[place] = undefined;
  }

  private stateAt(place: number): number {
    return (this.flags[place] ?? 0) & STATE;
  }

  private setState(place: number, state: number): void {
    this.flags[place] = ((this.flags[place] ?? 0) & ~STATE) | state;
  }

  private idAt(place: number): IdHalves {
    return [this.high[place] as number, this.low[place] as number];
  }
}

/** Deepest chain of ancestors that is climbed, so that a loop of parents ends. */
const MAX_DEPTH = 256;

function halves(high: Int32Array, low: Int32Array, place: number): IdHalves | undefined {
  const id: IdHalves = [high[place] as number, low[place] as number];
  return id[0] === 0 && id[1] === 0 ? undefined : id;
}

/** A span id as two 32-bit integers with a sign, the more significant half first. */
export type IdHalves = readonly [high: number, low: number];

/** The halves of a span id. */
export function halvesOf(id: SpanId): IdHalves {
  return [highOf(id), lowOf(id)];
}

/** The more significant half of a span id, as a 32-bit integer with a sign: one without would be an object to V8 as often as not. */
function highOf(id: SpanId): number {
  return Number.parseInt(id.slice(0, 8), 16) | 0;
}

/** The less significant half. */
function lowOf(id: SpanId): number {
  return Number.parseInt(id.slice(8), 16) | 0;
}

const NANOS_PER_SECOND_BIGINT = 1_000_000_000n;

/** OTel's time, whole seconds and nanoseconds, of nanoseconds; exact. Also for durations. */
export function hrTimeOf(nanos: UnixNano): HrTime {
  return [Number(nanos / NANOS_PER_SECOND_BIGINT), Number(nanos % NANOS_PER_SECOND_BIGINT)];
}

/** Whether one time is before another, each in seconds and nanoseconds. */
export function isBefore(seconds: number, nanos: number, thanSeconds: number, thanNanos: number): boolean {
  return seconds < thanSeconds || (seconds === thanSeconds && nanos < thanNanos);
}

/** Time interval of a span. */
export interface Interval {
  readonly spanHigh: number;
  readonly spanLow: number;
  readonly startSeconds: number;
  readonly startNanos: number;
  readonly endSeconds: number;
  readonly endNanos: number;
}

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
