import { ByteBuffer } from './byte-buffer.js';

/** Slots looked at before the dictionary is called crowded: only made-up numbers with equal hashes come that far. */
const MAX_PROBES = 64;

/** The distinct numbers of a column chunk, each with its index. A number is two halves of 32 bits, since bigints are slow. */
export class NumberDictionary {
  /** The numbers one after another, as a dictionary page holds them. */
  readonly values = new ByteBuffer(1024);
  count = 0;
  /** Too many numbers have the same hash; looking for more would take long. */
  isCrowded = false;
  private table = new Int32Array(64);
  private highs = new Uint32Array(32);
  private lows = new Uint32Array(32);

  /** @param byteCount 4 or 8; with 4 the high half is not written */
  constructor(private readonly byteCount: 4 | 8) {}

  /** The number's index; a new one gets the next. The halves are unsigned. */
  indexOf(high: number, low: number): number {
    const mask = this.table.length - 1;
    let slot = hashOf(high, low) & mask;
    for (let probes = 0; ; probes++) {
      const index = (this.table[slot] ?? 0) - 1;
      if (index < 0) return this.add(high, low);
      if (this.lows[index] === low && this.highs[index] === high) return index;
      if (probes > MAX_PROBES) this.isCrowded = true;
      slot = (slot + 1) & mask;
    }
  }

  clear(): void {
    this.values.clear();
    this.table.fill(0);
    this.count = 0;
    this.isCrowded = false;
  }

  private add(high: number, low: number): number {
    if (this.count === this.lows.length) this.grow();
    const index = this.count++;
    this.highs[index] = high;
    this.lows[index] = low;
    this.values.appendUint32(low);
    if (this.byteCount === 8) this.values.appendUint32(high);
    this.insert(index);
    return index;
  }

  /** Doubles the room; the table stays at most half full. */
  private grow(): void {
    const { highs, lows } = this;
    this.highs = new Uint32Array(highs.length * 2);
    this.highs.set(highs);
    this.lows = new Uint32Array(lows.length * 2);
    this.lows.set(lows);
    this.table = new Int32Array(this.table.length * 2);
    for (let index = 0; index < this.count; index++) this.insert(index);
  }

  private insert(index: number): void {
    const mask = this.table.length - 1;
    let slot = hashOf(this.highs[index] ?? 0, this.lows[index] ?? 0) & mask;
    while (this.table[slot] !== 0) slot = (slot + 1) & mask;
    this.table[slot] = index + 1;
  }
}

function hashOf(high: number, low: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
