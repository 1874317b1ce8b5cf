/** Bytes with a view, through which four or eight of them are read at once wherever they begin: several times as fast as byte by byte. */
export class ByteSource {
  readonly view: DataView;

  constructor(readonly bytes: Buffer) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A text as UTF-8. */
  static of(text: string): ByteSource {
    return new ByteSource(Buffer.from(text));
  }
}

/** Bytes that are written to by position and grow as needed. */
export class GrowingBytes {
  /** The bytes with their view; others after they grew. */
  source: ByteSource;
  bytes: Buffer;
  view: DataView;
  /** Where the next byte goes. */
  length = 0;

  constructor(sizeBytes: number) {
    this.source = new ByteSource(Buffer.allocUnsafeSlow(sizeBytes));
    this.bytes = this.source.bytes;
    this.view = this.source.view;
  }

  /** Makes room for so many bytes more. */
  reserve(byteCount: number): void {
    const needed = this.length + byteCount;
    if (needed > this.bytes.length) this.grow(needed);
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
    this.bytes.copy(larger, 0, 0, this.length);
    this.source = new ByteSource(larger);
    this.bytes = larger;
    this.view = this.source.view;
  }
}

/** A copy of an array of numbers that is twice as long, or as long as needed where that is more; zeros are added. */
export function grown<A extends Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array>(
  array: A,
  neededLength = 0,
): A {
  const ArrayOfKind = array.constructor as new (length: number) => A;
  const larger = new ArrayOfKind(Math.max(neededLength, 2 * array.length));
  larger.set(array);
  return larger;
}

const MIN_ENTRIES = 32;
/** Slots that are looked at before a table is called crowded: only made-up keys with equal hashes come that far. */
const MAX_PROBES = 64;

/**
 * A hash table of entries that its owner keeps in arrays, numbered from 0 on; at most half full (open addressing). To find
 * one, `seek` its hash and compare each candidate:
 *
 *     for (let entry = slots.seek(hash); entry >= 0; entry = slots.next()) if (isSame(entry)) return entry;
 *     return slots.add();
 */
export class HashSlots {
  count = 0;
  /** Too many keys have the same hash; looking for more would take long. */
  isCrowded = false;
  /** An entry's number plus one; 0 is free. */
  private slots = new Int32Array(2 * MIN_ENTRIES);
  private hashes = new Int32Array(MIN_ENTRIES);
  private hash = 0;
  private slot = 0;
  private candidates = 0;

  /** The first entry with this hash; -1 if there is none. */
  seek(hash: number): number {
    this.hash = hash;
    this.candidates = 0;
    return this.from(hash & (this.slots.length - 1));
  }

  /** The next entry with the hash that was sought; -1 if there is no more. */
  next(): number {
    if (this.candidates++ > MAX_PROBES) this.isCrowded = true;
    return this.from((this.slot + 1) & (this.slots.length - 1));
  }

  /** Adds an entry with the hash that was sought last, of which `next` has given all. @returns its number */
  add(): number {
    const entry = this.count++;
    if (entry === this.hashes.length) this.grow();
    this.hashes[entry] = this.hash;
    // The search ended at a free slot.
    this.slots[this.slot] = entry + 1;
    return entry;
  }

  clear(): void {
    this.slots.fill(0);
    this.count = 0;
    this.isCrowded = false;
  }

  private from(first: number): number {
    const { slots, hashes, hash } = this;
    const mask = slots.length - 1;
    let slot = first;
    let entry = (slots[slot] as number) - 1;
    for (let probes = 0; entry >= 0 && hashes[entry] !== hash; probes++) {
      if (probes > MAX_PROBES) this.isCrowded = true;
      slot = (slot + 1) & mask;
      entry = (slots[slot] as number) - 1;
    }
    this.slot = slot;
    return entry;
  }

  private freeSlot(hash: number): number {
    const { slots } = this;
    const mask = slots.length - 1;
    let slot = hash & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    this.hashes = grown(this.hashes);
    this.slots = new Int32Array(2 * this.slots.length);
    for (let entry = 0; entry < this.count - 1; entry++) {
      const slot = this.freeSlot(this.hashes[entry] as number);
      this.slots[slot] = entry + 1;
    }
    this.slot = this.freeSlot(this.hash);
  }
}

/** Four bytes at a time; the shifts bring high bits, which a product leaves alone, down to where a table looks. */
export function hashOfBytes(bytes: Buffer, view: DataView, start: number, end: number, seed: number): number {
  let hash = seed ^ (end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

/** Compares as many bytes of a source with others, from the end: names of one kind begin alike. */
export function isSameBytes(
  known: ByteSource,
  knownStart: number,
  bytes: Buffer,
  view: DataView,
  start: number,
  length: number,
): boolean {
  const { bytes: knownBytes, view: knownView } = known;
  let left = length;
  for (; left >= 4; left -= 4) {
    if (knownView.getInt32(knownStart + left - 4, true) !== view.getInt32(start + left - 4, true)) return false;
  }
  for (left--; left >= 0; left--) if (knownBytes[knownStart + left] !== bytes[start + left]) return false;
  return true;
}
