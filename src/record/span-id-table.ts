import { randomInt } from 'node:crypto';
import type { SpanId } from './telemetry-record.js';

const MIN_CAPACITY = 64;
/** Slots are free while their value is this. */
const FREE = 0;

/**
 * Numbers by span id, in 12 bytes a slot (at most two slots an entry) where a Map of strings takes about 100. Open
 * addressing over the id's two halves; the hash is seeded, so that a sender cannot choose ids that all meet in one place.
 */
export class SpanIdTable {
  private high = new Int32Array(MIN_CAPACITY);
  private low = new Int32Array(MIN_CAPACITY);
  /** Value plus one; 0 marks a free slot. */
  private values = new Uint32Array(MIN_CAPACITY);
  private count = 0;

  /** @param seed any 32 bits; random when left out. What the table holds does not depend on it. */
  constructor(private readonly seed: number = randomInt(2 ** 32)) {}

  get size(): number {
    return this.count;
  }

  /** Memory that it takes, in bytes. */
  get byteCount(): number {
    return this.high.byteLength + this.low.byteLength + this.values.byteLength;
  }

  /** The number that was set; `undefined` for an unknown id. */
  get(id: SpanId): number | undefined {
    return this.getHalves(halfOf(id, 0), halfOf(id, 8));
  }

  /** @param value an integer from 0 to 2^32 - 2 */
  set(id: SpanId, value: number): void {
    this.setHalves(halfOf(id, 0), halfOf(id, 8), value);
  }

  /** As `get`, for any 64 bits given as two 32-bit integers, with a sign or without, the first the more significant one. */
  getHalves(high: number, low: number): number | undefined {
    const value = this.values[this.slotOf(high, low)] ?? FREE;
    return value === FREE ? undefined : value - 1;
  }

  /** The slot of an id, made with value 0 if it is new. Good until the next id is added. */
  slotFor(high: number, low: number): number {
    const slot = this.slotOf(high, low);
    return this.values[slot] === FREE ? this.add(high, low, slot) : slot;
  }

  valueAt(slot: number): number {
    return (this.values[slot] as number) - 1;
  }

  /** @param value as for `set` */
  setValueAt(slot: number, value: number): void {
    this.values[slot] = value + 1;
  }

  /** As `set`, for any 64 bits given as two 32-bit integers. */
  setHalves(high: number, low: number, value: number): void {
    this.setValueAt(this.slotFor(high, low), value);
  }

  /** @param free the slot where the id would be if the table need not grow */
  private add(high: number, low: number, free: number): number {
    let slot = free;
    if (2 * (this.count + 1) > this.values.length) {
      this.grow();
      slot = this.slotOf(high, low);
    }
    this.count += 1;
    this.high[slot] = high;
    this.low[slot] = low;
    this.setValueAt(slot, 0);
    return slot;
  }

  /** Where the id is, or the free slot where it would be. */
  private slotOf(high: number, low: number): number {
    const mask = this.values.length - 1;
    let slot = mix(high, low, this.seed) & mask;
    const ownHigh = high | 0;
    const ownLow = low | 0;
    while (this.values[slot] !== FREE && (this.high[slot] !== ownHigh || this.low[slot] !== ownLow)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  private grow(): void {
    const { high, low, values } = this;
    this.high = new Int32Array(2 * high.length);
    this.low = new Int32Array(2 * low.length);
    this.values = new Uint32Array(2 * values.length);
    // Tables are made and grown by the thousand: an iterator's pair for each slot would be most of what it costs.
    for (let from = 0; from < values.length; from++) {
      const value = values[from] ?? FREE;
      if (value === FREE) continue;
      const slot = this.slotOf(high[from] ?? 0, low[from] ?? 0);
      this.high[slot] = high[from] ?? 0;
      this.low[slot] = low[from] ?? 0;
      this.values[slot] = value;
    }
  }
}

/** An id's 64 bits as two unsigned 32-bit integers, the more significant one first. */
export function spanIdHalves(id: SpanId): readonly [number, number] {
  return [halfOf(id, 0), halfOf(id, 8)];
}

/** Eight hexadecimal digits of an id, from `at` on. `parseInt` of a slice takes four times as long. */
function halfOf(id: SpanId, at: number): number {
  let half = 0;
  for (let index = at; index < at + 8; index++) {
    const code = id.charCodeAt(index);
    half = (half << 4) | (code <= NINE ? code - ZERO : code - TEN);
  }
  return half >>> 0;
}

const ZERO = 0x30;
const NINE = 0x39;
/** `a` stands for ten. */
const TEN = 0x61 - 10;

/** MurmurHash3's mixing of two blocks, with its finalizer. */
function mix(high: number, low: number, seed: number): number {
  let hash = mixBlock(mixBlock(seed, high), low);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mixBlock(hash: number, block: number): number {
  const scrambled = Math.imul(block, 0xcc9e2d51);
  const mixed = hash ^ Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** The id of two halves, as 32-bit integers with a sign or without. */
export function spanIdOf(high: number, low: number): SpanId {
  return ((high >>> 0).toString(16).padStart(8, '0') + (low >>> 0).toString(16).padStart(8, '0')) as SpanId;
}
