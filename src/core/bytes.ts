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

/** More bytes of another buffer are copied by a call, which makes a view each time. */
const SHORT_BYTES = 512;

/** Bytes that are written to by position and grow as needed. */
export class GrowingBytes {
  /** The bytes with their view; others after they grew. */
  source: ByteSource;
  bytes: Buffer;
  view: DataView;
  /** Where the next byte goes. */
  length = 0;

  /** @param initial the bytes that it begins with, or how many these are */
  constructor(initial: number | Buffer) {
    this.source = new ByteSource(typeof initial === 'number' ? Buffer.allocUnsafeSlow(initial) : initial);
    this.bytes = this.source.bytes;
    this.view = this.source.view;
  }

  /** Makes room for so many bytes more. */
  reserve(byteCount: number): void {
    const needed = this.length + byteCount;
    if (needed > this.bytes.length) this.grow(needed);
  }

  /** Appends a part of its own bytes, or of others. */
  append({ bytes: from, view: fromView }: ByteSource, start: number, end: number): void {
    const length = end - start;
    this.reserve(length);
    const { bytes, view, length: to } = this;
    // What it holds may stand in others since it grew.
    if (from === bytes) bytes.copyWithin(to, start, end);
    else if (length > SHORT_BYTES) from.copy(bytes, to, start, end);
    else if (length < 4) for (let at = 0; at < length; at++) view.setUint8(to + at, fromView.getUint8(start + at));
    else {
      // The last four are copied together, though some of them were before.
      const last = length - 4;
      for (let at = 0; at < last; at += 4) view.setInt32(to + at, fromView.getInt32(start + at, true), true);
      view.setInt32(to + last, fromView.getInt32(start + last, true), true);
    }
    this.length = to + length;
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
    this.bytes.copy(larger, 0, 0, this.length);
    this.source = new ByteSource(larger);
    this.bytes = larger;
    this.view = this.source.view;
  }
}

/** Number and maximum size of buffers that a pool keeps for those who need one next. */
const MAX_KEPT = 8;
const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** Sizes are rounded up to this, so that what has about the same size fits each other's buffers. */
const STEP_BYTES = 64 * 1024;

/**
 * Buffers that are used again and again: one that is allocated for each use is memory that the system has to clear and the
 * collector to find again, some hundred megabytes between two collections.
 */
export class BufferPool {
  private readonly free: Buffer[] = [];

  /** A buffer of at least so many bytes, with anything in it. */
  take(byteCount: number): Buffer {
    const index = this.free.findIndex(({ length }) => length >= byteCount);
    const [found] = index < 0 ? [] : this.free.splice(index, 1);
    return found ?? Buffer.allocUnsafeSlow(Math.ceil(byteCount / STEP_BYTES) * STEP_BYTES);
  }

  /** @param buffer from this pool, no longer used */
  giveBack(buffer: Buffer): void {
    if (buffer.length > MAX_KEPT_BYTES) return;
    if (this.free.length >= MAX_KEPT) this.free.shift();
    this.free.push(buffer);
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
/** A table is at most half full. */
const SLOTS_AN_ENTRY = 2;
/** Slots for an entry from which on a table is much too large. */
const SPARSE = 16;
/** The bits of a slot that are an entry's number: of more entries than one record has values. */
const NUMBER_BITS = 0x3f_ffff;
/** Slots that are looked at before a table is called crowded: only made-up keys with equal hashes come that far. */
const MAX_PROBES = 64;

/**
 * A hash table of entries that its owner keeps in arrays, numbered from 0 on; at most half full (open addressing). It is small, for
 * what is looked up in a large one seldom is in the processor's cache. To find an entry, `seek` its hash and compare each candidate:
 *
 *     for (let entry = slots.seek(hash); entry >= 0; entry = slots.next()) if (isSame(entry)) return entry;
 *     return slots.add();
 */
export class HashSlots {
  count = 0;
  /** Too many keys have the same hash; looking for more would take long. */
  isCrowded = false;
  /**
   * Of each slot its entry's number plus one in the low bits, and the high bits of the entry's hash in the others: one look into memory
   * finds both. 0 where it is free.
   */
  private slots = new Int32Array(SLOTS_AN_ENTRY * MIN_ENTRIES);
  /** The hash of each entry, as many as the table may have. */
  private hashes = new Int32Array(MIN_ENTRIES);
  private mask = SLOTS_AN_ENTRY * MIN_ENTRIES - 1;
  private hash = 0;
  private slot = 0;
  private candidates = 0;

  /** Reads where the search for a hash begins, and waits for nothing: what is sought soon after is in the processor's cache then. */
  touch(hash: number): number {
    return this.slots[hash & this.mask] as number;
  }

  /** The first entry that may have this hash; -1 if there is none. */
  seek(hash: number): number {
    this.hash = hash;
    this.candidates = 0;
    return this.from(hash & this.mask);
  }

  /** The next entry that may have the hash that was sought; -1 if there is no more. */
  next(): number {
    if (this.candidates++ > MAX_PROBES) this.isCrowded = true;
    return this.from((this.slot + 1) & this.mask);
  }

  /** Adds an entry with the hash that was sought last, of which `next` has given all. @returns its number */
  add(): number {
    const entry = this.count++;
    if (SLOTS_AN_ENTRY * this.count > this.mask + 1) this.grow();
    this.hashes[entry] = this.hash;
    // The search ended at a free slot.
    this.put(this.slot, entry);
    return entry;
  }

  /** Forgets all entries. A table that was much larger than it had to be becomes half as large, so that clearing it costs less. */
  clear(): void {
    if (this.mask > MIN_ENTRIES * SLOTS_AN_ENTRY && this.count * SPARSE < this.mask) {
      this.slots = new Int32Array(this.slots.length / 2);
      this.hashes = new Int32Array(this.hashes.length / 2);
      this.mask >>>= 1;
    } else this.slots.fill(0);
    this.count = 0;
    this.isCrowded = false;
  }

  private from(first: number): number {
    const { slots, mask, hash } = this;
    let slot = first;
    let found = slots[slot] as number;
    for (let probes = 0; found !== 0 && ((found ^ hash) & ~NUMBER_BITS) !== 0; probes++) {
      if (probes > MAX_PROBES) this.isCrowded = true;
      slot = (slot + 1) & mask;
      found = slots[slot] as number;
    }
    this.slot = slot;
    return (found & NUMBER_BITS) - 1;
  }

  private put(slot: number, entry: number): void {
    this.slots[slot] = ((this.hashes[entry] as number) & ~NUMBER_BITS) | (entry + 1);
  }

  private freeSlot(hash: number): number {
    const { slots, mask } = this;
    let slot = hash & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    return slot;
  }

  private grow(): void {
    this.slots = new Int32Array(2 * this.slots.length);
    this.hashes = grown(this.hashes);
    this.mask = 2 * this.mask + 1;
    for (let entry = 0; entry < this.count - 1; entry++) this.put(this.freeSlot(this.hashes[entry] as number), entry);
    this.slot = this.freeSlot(this.hash);
  }
}

/** MurmurHash3's finalizer: each bit that goes in decides about all that come out. @returns 32 bits with a sign */
export function spread(bits: number): number {
  let mixed = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * Four bytes at a time, of long texts in four lanes that do not wait for each other; the shifts bring high bits, which a product leaves alone, down
 * to where a table looks.
 */
export function hashOfBytes(bytes: Buffer, view: DataView, start: number, end: number, seed: number): number {
  let hash = seed ^ (end - start);
  let at = start;
  if (end - start >= 32) {
    let second = hash ^ 0x3c6ef372;
    let third = hash ^ 0x1b873593;
    let fourth = hash ^ 0x52dce729;
    for (; at + 16 <= end; at += 16) {
      hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1);
      second = Math.imul(second ^ view.getInt32(at + 4, true), 0x85ebca77);
      third = Math.imul(third ^ view.getInt32(at + 8, true), 0xc2b2ae3d);
      fourth = Math.imul(fourth ^ view.getInt32(at + 12, true), 0x27d4eb2f);
      hash ^= hash >>> 15;
      second ^= second >>> 15;
      third ^= third >>> 15;
      fourth ^= fourth >>> 15;
    }
    hash = Math.imul(hash ^ second, 0x2c1b3c6d) ^ Math.imul(third ^ (fourth >>> 3), 0x297a2d39);
    hash ^= hash >>> 15;
  }
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
  for (; left >= 8; left -= 8) {
    const last = knownView.getInt32(knownStart + left - 4, true) ^ view.getInt32(start + left - 4, true);
    const before = knownView.getInt32(knownStart + left - 8, true) ^ view.getInt32(start + left - 8, true);
    if ((last | before) !== 0) return false;
  }
  for (; left >= 4; left -= 4) {
    if (knownView.getInt32(knownStart + left - 4, true) !== view.getInt32(start + left - 4, true)) return false;
  }
  for (left--; left >= 0; left--) if (knownBytes[knownStart + left] !== bytes[start + left]) return false;
  return true;
}
