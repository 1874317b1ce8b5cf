import type { SpanId } from '../../record/ids.js';
import type { Resource } from '../../record/resource.js';
import { SpanIdTable } from '../../record/span-id-table.js';
import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import { EVENT_TYPE } from './event-types.js';
import { highOf, lowOf, spanIdOf } from './id-halves.js';

/** A span's start, kept while the span is open. */
export interface OpenStart {
  readonly resource: Resource;
  /** Set back when the span ends: nobody will ask for the record then. */
  isOpen: boolean;
  /** The record itself; `undefined` where its line turns out to be damaged. */
  readRecord(): SpanStart | undefined;
}

/** What the tree is to remember of a span; ids as halves, see `id-halves.ts`, both 0 for none. */
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
 * in arrays of numbers, 33 bytes a span and as much again for finding it: as objects in a Map they took 300.
 */
export class SpanTree {
  /** Places by id. The place of a span that was forgotten is another's: its id there tells. */
  private places = new SpanIdTable();
  private count = 0;
  private high = new Int32Array(MIN_PLACES);
  private low = new Int32Array(MIN_PLACES);
  private parentHigh = new Int32Array(MIN_PLACES);
  private parentLow = new Int32Array(MIN_PLACES);
  /** The node's own NodeProcessed span, which a NodeEvaluated span links to; both 0 for none. */
  private processedHigh = new Int32Array(MIN_PLACES);
  private processedLow = new Int32Array(MIN_PLACES);
  private flags = new Uint8Array(MIN_PLACES);
  private readonly starts: (OpenStart | undefined)[] = [];

  constructor(private readonly maxRememberedSpans: number) {}

  /** A start was read. @returns false, and does nothing, when the span is known already. */
  begin(span: SeenSpan, start: OpenStart): boolean {
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

  isSent(spanId: SpanId): boolean {
    const place = this.find(spanId);
    return place !== undefined && this.stateAt(place) === SENT;
  }

  /** The nearest ancestor that was not sent yet; over OTLP that is often one that did not come yet. */
  nearestUnsentAncestor(spanId: SpanId): SpanId | undefined {
    let highest = this.find(spanId);
    for (const place of this.ancestors(spanId)) {
      if (this.stateAt(place) !== SENT) return this.idAt(place);
      highest = place;
    }
    if (highest === undefined || ((this.flags[highest] ?? 0) & IS_ROOT) !== 0) return undefined;
    const above = this.parentAt(highest);
    return above === undefined || this.isSent(above) ? undefined : above;
  }

  /** The NodeProcessed span of the node that a span works for, as far as its known ancestors tell. */
  processedSpanOf(spanId: SpanId): SpanId | undefined {
    const own = this.find(spanId);
    const processed = own === undefined ? undefined : this.processedAt(own);
    if (processed !== undefined) return processed;
    for (const place of this.ancestors(spanId)) {
      const ofAncestor = this.processedAt(place);
      if (ofAncestor !== undefined) return ofAncestor;
    }
    return undefined;
  }

  /** The invocation span above a span, as far as its known ancestors tell. */
  invocationOf(spanId: SpanId): SpanId | undefined {
    for (const place of this.ancestors(spanId)) {
      if (((this.flags[place] ?? 0) & IS_INVOCATION) !== 0) return this.idAt(place);
    }
    return undefined;
  }

  /** Starts of spans that have not ended, in the order of the log. */
  openStarts(): readonly OpenStart[] {
    const starts: OpenStart[] = [];
    for (let number = Math.max(0, this.count - this.maxRememberedSpans); number < this.count; number++) {
      const start = this.starts[number % this.maxRememberedSpans];
      if (start !== undefined) starts.push(start);
    }
    return starts;
  }

  private *ancestors(spanId: SpanId): Generator<number> {
    let child = this.find(spanId);
    for (let depth = 0; child !== undefined && depth < MAX_DEPTH; depth++) {
      const high = this.parentHigh[child] ?? 0;
      const low = this.parentLow[child] ?? 0;
      const parent = high === 0 && low === 0 ? undefined : this.placeOf(high, low);
      if (parent === undefined) return;
      yield parent;
      child = parent;
    }
  }

  private find(spanId: SpanId): number | undefined {
    return this.placeOf(highOf(spanId), lowOf(spanId));
  }

  private placeOf(high: number, low: number): number | undefined {
    const place = this.places.getHalves(high, low);
    return place !== undefined && this.high[place] === high && this.low[place] === low ? place : undefined;
  }

  /** Remembers a span, in the place of the oldest one when there are too many. */
  private add(span: SeenSpan, state: number): number {
    const place = this.count++ % this.maxRememberedSpans;
    if (place >= this.high.length) this.grow();
    this.closeStart(place);
    this.high[place] = span.spanHigh;
    this.low[place] = span.spanLow;
    this.parentHigh[place] = span.parentHigh;
    this.parentLow[place] = span.parentLow;
    this.processedHigh[place] = this.processedLow[place] = 0;
    this.setProcessed(place, span);
    const isInvocation = span.eventType === EVENT_TYPE.invocation;
    const isRoot = isInvocation || span.eventType === EVENT_TYPE.process;
    this.flags[place] = state | (isInvocation ? IS_INVOCATION : 0) | (isRoot ? IS_ROOT : 0);
    if (this.places.size >= 2 * this.maxRememberedSpans) this.forgetOldPlaces();
    else this.places.setHalves(span.spanHigh, span.spanLow, place);
    return place;
  }

  /** The table knows no removal: when half of it is of forgotten spans, it is made anew. */
  private forgetOldPlaces(): void {
    this.places = new SpanIdTable();
    const placeCount = Math.min(this.count, this.maxRememberedSpans);
    for (let place = 0; place < placeCount; place++) {
      this.places.setHalves(this.high[place] ?? 0, this.low[place] ?? 0, place);
    }
  }

  private grow(): void {
    this.high = larger(this.high);
    this.low = larger(this.low);
    this.parentHigh = larger(this.parentHigh);
    this.parentLow = larger(this.parentLow);
    this.processedHigh = larger(this.processedHigh);
    this.processedLow = larger(this.processedLow);
    const flags = new Uint8Array(2 * this.flags.length);
    flags.set(this.flags);
    this.flags = flags;
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

  private idAt(place: number): SpanId {
    return spanIdOf(this.high[place] ?? 0, this.low[place] ?? 0);
  }

  private parentAt(place: number): SpanId | undefined {
    return idOrNone(this.parentHigh[place] ?? 0, this.parentLow[place] ?? 0);
  }

  private processedAt(place: number): SpanId | undefined {
    return idOrNone(this.processedHigh[place] ?? 0, this.processedLow[place] ?? 0);
  }
}

/** What a tree remembers of a record. */
export function seenSpan(record: SpanStart | SpanEnd): SeenSpan {
  const link = record.links?.[0]?.spanId;
  return {
    spanHigh: highOf(record.spanId),
    spanLow: lowOf(record.spanId),
    parentHigh: record.parentSpanId === null ? 0 : highOf(record.parentSpanId),
    parentLow: record.parentSpanId === null ? 0 : lowOf(record.parentSpanId),
    eventType: record.eventType,
    linkHigh: link === undefined ? 0 : highOf(link),
    linkLow: link === undefined ? 0 : lowOf(link),
  };
}

/** The start of a span that was pushed as a record. */
export function recordStart(record: SpanStart, { resource }: LoggedRecord): OpenStart {
  return { resource, isOpen: true, readRecord: () => record };
}

/** Deepest chain of ancestors that is climbed, so that a loop of parents ends. */
const MAX_DEPTH = 256;

function idOrNone(high: number, low: number): SpanId | undefined {
  return high === 0 && low === 0 ? undefined : spanIdOf(high, low);
}

function larger(array: Int32Array): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(2 * array.length);
  copy.set(array);
  return copy;
}
