/** A buffer with a `DataView` of it, which reads four or eight bytes at once at any offset: several times as fast as byte by byte. */
export class ByteSource {
  readonly view: DataView;

  constructor(readonly bytes: Buffer) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Makes a source of a text's UTF-8 bytes. */
  static of(text: string): ByteSource {
    return new ByteSource(Buffer.from(text));
  }
}

/** The longest range that is copied by a loop; `Buffer.copy` makes a view at each call, which pays for longer ranges only. */
const SHORT_BYTES = 512;

/** A buffer that is written to by position and grows as needed. */
export class GrowingBytes {
  /** The buffer with its view; replaced when the buffer grows. */
  source: ByteSource;
  bytes: Buffer;
  view: DataView;
  /** The number of bytes written, which is the offset of the next one. */
  length = 0;

  /** @param initial the buffer to begin with, or its size in bytes */
  constructor(initial: number | Buffer) {
    this.source = new ByteSource(typeof initial === 'number' ? Buffer.allocUnsafeSlow(initial) : initial);
    this.bytes = this.source.bytes;
    this.view = this.source.view;
  }

  /** Makes sure that `byteCount` more bytes fit. */
  reserve(byteCount: number): void {
    const needed = this.length + byteCount;
    if (needed > this.bytes.length) this.grow(needed);
  }

  /** Appends a range of another source, or of this buffer itself. */
  append({ bytes: from, view: fromView }: ByteSource, start: number, end: number): void {
    const length = end - start;
    this.reserve(length);
    const { bytes, view, length: to } = this;
    // After a growth, `from` may be the smaller buffer of before, which still has the same bytes.
    if (from === bytes) bytes.copyWithin(to, start, end);
    else if (length > SHORT_BYTES) from.copy(bytes, to, start, end);
    else if (length < 4) for (let at = 0; at < length; at++) view.setUint8(to + at, fromView.getUint8(start + at));
    else {
      // The last four bytes are copied together and may overlap those before.
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

/** The most buffers that a pool keeps, and the largest one that it keeps. */
const MAX_KEPT = 8;
const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** Sizes are rounded up to a multiple of this, so that requests of similar sizes can share a buffer. */
const STEP_BYTES = 64 * 1024;

/** Keeps used buffers for the next caller. A new buffer for each use would have to be cleared by the system and found by the garbage collector: some hundred megabytes between two collections. */
export class BufferPool {
  private readonly free: Buffer[] = [];

  /** Returns a buffer of at least `byteCount` bytes, whose contents are undefined. */
  take(byteCount: number): Buffer {
    const index = this.free.findIndex(({ length }) => length >= byteCount);
    const [found] = index < 0 ? [] : this.free.splice(index, 1);
    return found ?? Buffer.allocUnsafeSlow(Math.ceil(byteCount / STEP_BYTES) * STEP_BYTES);
  }

  /** Gives a buffer back. @param buffer comes from this pool and is no longer used */
  giveBack(buffer: Buffer): void {
    if (buffer.length > MAX_KEPT_BYTES) return;
    if (this.free.length >= MAX_KEPT) this.free.shift();
    this.free.push(buffer);
  }
}

/** Copies an array of numbers into one that is twice as long, or `neededLength` if that is more; the new elements are 0. */
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
/** The number of slots for each entry: the table is at most half full. */
const SLOTS_AN_ENTRY = 2;
/** The table is halved when it is cleared and has more than this many slots for each entry. */
const SPARSE = 16;
/** The low bits of a slot, which are its entry's number plus one. They suffice for more entries than one record has values. */
const NUMBER_BITS = 0x3f_ffff;
/** The table is called crowded after this many probes: only keys made up to have equal hashes need so many. */
const MAX_PROBES = 64;

/**
 * Hash table with open addressing for entries that the caller keeps in arrays, numbered from 0. It stores numbers and hashes only, so that it stays small enough for the processor's cache.
 * To find or add an entry, `seek` its hash and compare each candidate:
 *
 *     for (let entry = slots.seek(hash); entry >= 0; entry = slots.next()) if (isSame(entry)) return entry;
 *     return slots.add();
 */
export class HashSlots {
  count = 0;
  /** Whether too many keys share a hash, so that searching for more would take long. */
  isCrowded = false;
  /** Each slot has its entry's number plus one in the low bits and the high bits of its hash in the others, so that one read of memory finds both. A free slot is 0. */
  private slots = new Int32Array(SLOTS_AN_ENTRY * MIN_ENTRIES);
  /** The hash of each entry, up to the capacity of the table. */
  private hashes = new Int32Array(MIN_ENTRIES);
  private mask = SLOTS_AN_ENTRY * MIN_ENTRIES - 1;
  private hash = 0;
  private slot = 0;
  private candidates = 0;

  /** Reads the first slot of a hash without waiting for it, so that it is in the processor's cache when the hash is sought soon after. */
  touch(hash: number): number {
    return this.slots[hash & this.mask] as number;
  }

  /** Returns the first entry that may have this hash; -1 if there is none. */
  seek(hash: number): number {
    this.hash = hash;
    this.candidates = 0;
    return this.from(hash & this.mask);
  }

  /** Returns the next entry that may have the hash of the last `seek`; -1 if there are no more. */
  next(): number {
    if (this.candidates++ > MAX_PROBES) this.isCrowded = true;
    return this.from((this.slot + 1) & this.mask);
  }

  /** Adds an entry with the hash of the last `seek`, after `next` has returned -1. @returns its number */
  add(): number {
    const entry = this.count++;
    if (SLOTS_AN_ENTRY * this.count > this.mask + 1) this.grow();
    this.hashes[entry] = this.hash;
    // The search has ended at a free slot.
    this.put(this.slot, entry);
    return entry;
  }

  /** Removes all entries. Halves a table that was much larger than needed, so that clearing it costs less next time. */
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

/** Mixes 32 bits so that each input bit affects all output bits (the finalizer of MurmurHash3). @returns a signed 32-bit integer */
export function spread(bits: number): number {
  let mixed = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * Hashes a range of bytes to a signed 32-bit integer, four bytes at a time and long ranges in four independent lanes. The shifts bring the high bits, which a product leaves alone, down to where a
 * table looks.
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

/** Whether two ranges of `length` bytes are equal. Compares from the end, since names of one kind begin alike. */
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
