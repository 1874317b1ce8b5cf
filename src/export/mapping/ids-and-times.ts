import { randomInt } from 'node:crypto';
import type { HrTime } from '@opentelemetry/api';
import type { SpanId } from '../../record/ids.js';
import type { UnixNano } from '../../record/unix-nano.js';

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

/** The span id of two halves, as 32-bit integers with a sign or without. */
export function spanIdOf(high: number, low: number): SpanId {
  // Two halves in hexadecimal are what every SpanId is.
  return (eightDigits(high) + eightDigits(low)) as SpanId;
}

function eightDigits(half: number): string {
  return (half >>> 0).toString(16).padStart(8, '0');
}

interface Entry<V> {
  readonly high: number;
  readonly low: number;
  value: V;
  /** Another id with the same hash. */
  next: Entry<V> | undefined;
  /** Those that were added before it and after it. */
  before: Entry<V> | undefined;
  after: Entry<V> | undefined;
}

/**
 * Values by span id, without a text for each id. Of limited size: beyond it the entry that was added first goes.
 * The hash is seeded, so that a sender cannot choose ids that all meet in one place.
 */
export class SpanIdMap<V> {
  private readonly entries = new Map<number, Entry<V>>();
  /** The entries know their order: an iterator that is kept at the oldest one keeps all that the Map ever was. */
  private first: Entry<V> | undefined;
  private last: Entry<V> | undefined;
  private count = 0;

  /** @param seed any 32 bits. What the map holds does not depend on it. */
  constructor(
    private readonly maxSize = Number.POSITIVE_INFINITY,
    private readonly seed = randomInt(2 ** 32),
  ) {}

  get size(): number {
    return this.count;
  }

  get(high: number, low: number): V | undefined {
    let entry = this.entries.get(this.hashOf(high, low));
    while (entry !== undefined && (entry.high !== high || entry.low !== low)) entry = entry.next;
    return entry?.value;
  }

  /** Adds an id that is not there. */
  add(high: number, low: number, value: V): void {
    const hash = this.hashOf(high, low);
    const others = this.entries.get(hash);
    const entry: Entry<V> = { high, low, value, next: others, before: this.last, after: undefined };
    this.entries.set(hash, entry);
    if (this.last === undefined) this.first = entry;
    else this.last.after = entry;
    this.last = entry;
    this.count++;
    if (this.count > this.maxSize && this.first !== undefined) this.delete(this.first.high, this.first.low);
  }

  delete(high: number, low: number): void {
    const hash = this.hashOf(high, low);
    let previous: Entry<V> | undefined;
    let entry = this.entries.get(hash);
    while (entry !== undefined && (entry.high !== high || entry.low !== low)) {
      previous = entry;
      entry = entry.next;
    }
    if (entry === undefined) return;
    if (previous !== undefined) previous.next = entry.next;
    else if (entry.next !== undefined) this.entries.set(hash, entry.next);
    else this.entries.delete(hash);
    if (entry.before === undefined) this.first = entry.after;
    else entry.before.after = entry.after;
    if (entry.after === undefined) this.last = entry.before;
    else entry.after.before = entry.before;
    this.count--;
  }

  /** In the order in which they were added. */
  *[Symbol.iterator](): Generator<readonly [id: IdHalves, value: V]> {
    for (let entry = this.first; entry !== undefined; entry = entry.after) {
      yield [[entry.high, entry.low], entry.value];
    }
  }

  private hashOf(high: number, low: number): number {
    const hash = Math.imul(high ^ this.seed, 0x9e3779b1) ^ low;
    return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  }
}

const NANOS_PER_SECOND = 1_000_000_000n;

/** OTel's time, whole seconds and nanoseconds, of nanoseconds; exact. Also for durations. */
export function hrTimeOf(nanos: UnixNano): HrTime {
  return [Number(nanos / NANOS_PER_SECOND), Number(nanos % NANOS_PER_SECOND)];
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
