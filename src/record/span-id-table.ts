import { randomInt } from 'node:crypto';
import { spread } from '../core/bytes.js';
import type { SpanId } from './telemetry-record.js';

const MIN_CAPACITY = 64;
/** The numbers of a slot: the two halves of its id, and its value plus one. They are adjacent, since slots are accessed at random. */
const SLOT = 3;
const LOW = 1;
const VALUE = 2;
/** The value of a free slot. */
const FREE = 0;

/**
 * A hash table from span ids to numbers, with 12 bytes a slot (at most two slots an entry); a Map of strings takes about 100 bytes an entry. Open addressing; the hash is seeded, so that senders
 * cannot choose ids that collide.
 */
export class SpanIdTable {
  private slots = new Int32Array(SLOT * MIN_CAPACITY);
  private mask = MIN_CAPACITY - 1;
  private count = 0;

  /** @param seed any 32 bits; random by default. It does not affect the contents. */
  constructor(private readonly seed: number = randomInt(2 ** 32)) {}

  get size(): number {
    return this.count;
  }

  /** The memory of the table, in bytes. */
  get byteCount(): number {
    return this.slots.byteLength;
  }

  /** Returns the number of an id; `undefined` if the id is unknown. */
  get(id: SpanId): number | undefined {
    return this.getHalves(halfOf(id, 0), halfOf(id, 8));
  }

  /** @param value an integer from 0 to 2^32 - 2 */
  set(id: SpanId, value: number): void {
    this.setHalves(halfOf(id, 0), halfOf(id, 8), value);
  }

  /** Like `get`, for an id given as two 32-bit integers (signed or unsigned), the more significant one first. */
  getHalves(high: number, low: number): number | undefined {
    const value = this.slots[this.slotOf(high, low) + VALUE] as number;
    return value === FREE ? undefined : (value >>> 0) - 1;
  }

  /** Returns the slot of an id; a new id is added with value 0. The slot is valid until the next id is added or removed. */
  slotFor(high: number, low: number): number {
    const slot = this.slotOf(high, low);
    return this.slots[slot + VALUE] === FREE ? this.add(high, low, slot) : slot;
  }

  /** Returns all numbers, in no particular order. */
  values(): number[] {
    const values: number[] = [];
    for (let slot = 0; slot < this.slots.length; slot += SLOT) {
      if (this.slots[slot + VALUE] !== FREE) values.push(this.valueAt(slot));
    }
    return values;
  }

  valueAt(slot: number): number {
    return ((this.slots[slot + VALUE] as number) >>> 0) - 1;
  }

  /** @param value as for `set` */
  setValueAt(slot: number, value: number): void {
    this.slots[slot + VALUE] = value + 1;
  }

  /** Like `set`, for an id given as two 32-bit integers. */
  setHalves(high: number, low: number, value: number): void {
    this.setValueAt(this.slotFor(high, low), value);
  }

  /** Removes an id if it is in the table, and moves later entries up so that searches still find them. */
  deleteHalves(high: number, low: number): void {
    const { slots, mask } = this;
    const slot = this.slotOf(high, low);
    if (slots[slot + VALUE] === FREE) return;
    let gap = (slot / SLOT) | 0;
    for (let number = (gap + 1) & mask; slots[SLOT * number + VALUE] !== FREE; number = (number + 1) & mask) {
      const at = SLOT * number;
      const wanted = mix(slots[at] as number, slots[at + LOW] as number, this.seed);
      // An entry may not move before the slot at which its search begins.
      if (((number - wanted) & mask) < ((number - gap) & mask)) continue;
      const to = SLOT * gap;
      slots[to] = slots[at] as number;
      slots[to + LOW] = slots[at + LOW] as number;
      slots[to + VALUE] = slots[at + VALUE] as number;
      gap = number;
    }
    slots[SLOT * gap + VALUE] = FREE;
    this.count -= 1;
  }

  /** @param free the slot for the id unless the table has to grow */
  private add(high: number, low: number, free: number): number {
    let slot = free;
    if (2 * (this.count + 1) > this.mask + 1) {
      this.grow();
      slot = this.slotOf(high, low);
    }
    this.count += 1;
    this.slots[slot] = high;
    this.slots[slot + LOW] = low;
    this.setValueAt(slot, 0);
    return slot;
  }

  /** Returns the slot of an id, or the free slot for it. */
  private slotOf(high: number, low: number): number {
    const { slots, mask } = this;
    const wantedHigh = high | 0;
    const wantedLow = low | 0;
    let number = mix(high, low, this.seed) & mask;
    let slot = SLOT * number;
    while (slots[slot + VALUE] !== FREE && (slots[slot] !== wantedHigh || slots[slot + LOW] !== wantedLow)) {
      number = (number + 1) & mask;
      slot = SLOT * number;
    }
    return slot;
  }

  private grow(): void {
    const { slots } = this;
    this.slots = new Int32Array(2 * slots.length);
    this.mask = 2 * this.mask + 1;
    // Thousands of tables are made and grow: an iterator would allocate a pair for each slot, which would be most of
    // the cost.
    for (let from = 0; from < slots.length; from += SLOT) {
      const value = slots[from + VALUE] as number;
      if (value === FREE) continue;
      const slot = this.slotOf(slots[from] as number, slots[from + LOW] as number);
      this.slots[slot] = slots[from] as number;
      this.slots[slot + LOW] = slots[from + LOW] as number;
      this.slots[slot + VALUE] = value;
    }
  }
}

/** Returns an id's 64 bits as two unsigned 32-bit integers, the more significant one first. */
export function spanIdHalves(id: SpanId): readonly [number, number] {
  return [halfOf(id, 0), halfOf(id, 8)];
}

/** Parses eight hexadecimal digits of an id. `parseInt` of a slice takes four times as long. */
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
/** Subtracted from the code of `a`, this gives 10. */
const TEN = 0x61 - 10;

/** Mixes two blocks and the seed as MurmurHash3 does, with its finalizer. */
function mix(high: number, low: number, seed: number): number {
  return spread(mixBlock(mixBlock(seed, high), low));
}

function mixBlock(hash: number, block: number): number {
  const scrambled = Math.imul(block, 0xcc9e2d51);
  const mixed = hash ^ Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** Returns the id of two halves, given as signed or unsigned 32-bit integers. */
export function spanIdOf(high: number, low: number): SpanId {
  return ((high >>> 0).toString(16).padStart(8, '0') + (low >>> 0).toString(16).padStart(8, '0')) as SpanId;
}
