import { ByteSource, type GrowingBytes } from '../core/bytes.js';

/**
 * One block of memory in which records are decoded and their lines are written. Positions in it are integers, so bytes are copied from one region to another without a view, string or object. Pages
 * that were never written take no memory.
 */
const MIB = 1024 * 1024;

/** The offset at which each region begins. */
export const REGION = {
  /** Constant bytes: keys, heads of lines. Offset 0 means "none". */
  constants: 64,
  /** Lines of JSONL that are being read. */
  bodies: 8 * MIB,
  /** Lines of the record that is being written. */
  lines: 16 * MIB,
  /** Remembered texts, and what was made of each. */
  texts: 32 * MIB,
  /** Requests as received, and items that wait. */
  items: 56 * MIB,
  /** Temporary values, valid until the next one is written. */
  scratch: 88 * MIB,
  end: 104 * MIB,
} as const;

/** Bytes after a range that reads and copies of several bytes at a time may touch. */
export const SLACK = 32;
/** The longest record whose lines are sure to fit. */
export const MAX_RECORD_BYTES = MIB;

const memory = new ArrayBuffer(REGION.end);
export const bytes = new Uint8Array(memory);
export const view = new DataView(memory);
export const buffer = Buffer.from(memory);
/** The whole arena, for functions that also read other buffers. */
export const ARENA = new ByteSource(buffer);

/** Longer texts are copied by `copyWithin`, whose call costs as much as a loop over this many bytes. */
const SHORT_TEXT = 176;

/**
 * Copies UTF-8 eight bytes at a time as doubles; no UTF-8 is a NaN pattern, which such a copy could change. Overwrites up to 15 bytes after the target.
 * @returns the end of the copy
 */
export function copyText(to: number, from: number, length: number): number {
  if (length > SHORT_TEXT) bytes.copyWithin(to, from, from + length);
  else {
    for (let at = 0; at < length; at += 16) {
      view.setFloat64(to + at, view.getFloat64(from + at, true), true);
      view.setFloat64(to + at + 8, view.getFloat64(from + at + 8, true), true);
    }
  }
  return to + length;
}

/** Longer ranges are copied by `copyWithin`. */
const SHORT_BYTES = 96;

/** Copies any bytes. Overwrites up to 3 bytes after the target. @returns the end of the copy */
export function copyBytes(to: number, from: number, length: number): number {
  if (length > SHORT_BYTES) bytes.copyWithin(to, from, from + length);
  else for (let at = 0; at < length; at += 4) view.setInt32(to + at, view.getInt32(from + at, true), true);
  return to + length;
}

/** Cached views have lengths in steps of this many bytes, up to `MAX_VIEW_STEPS` steps. */
const VIEW_STEP = 64;
const MAX_VIEW_STEPS = 256;

/** Copies bytes that begin at a fixed offset of the arena to growing buffers, through cached views: making a view takes longer than such a copy. */
export class Outlet {
  private readonly views = new Array<Uint8Array | undefined>(MAX_VIEW_STEPS + 1).fill(undefined);

  constructor(private readonly start: number) {}

  /** Appends the first `byteCount` bytes to `target`. */
  appendTo(target: GrowingBytes, byteCount: number): void {
    target.reserve(byteCount);
    const { length: at, bytes: into } = target;
    const steps = Math.ceil(byteCount / VIEW_STEP);
    // Whatever is copied beyond `byteCount` is overwritten by the next append.
    const isViewed = steps <= MAX_VIEW_STEPS && at + steps * VIEW_STEP <= into.length;
    into.set(isViewed ? this.viewOf(steps) : bytes.subarray(this.start, this.start + byteCount), at);
    target.length = at + byteCount;
  }

  private viewOf(steps: number): Uint8Array {
    const known = this.views[steps];
    if (known !== undefined) return known;
    const made = new Uint8Array(memory, this.start, steps * VIEW_STEP);
    this.views[steps] = made;
    return made;
  }
}

/** Whether two ranges have the same bytes. The last eight or four are compared together and may overlap those before. */
export function isSame(a: number, b: number, length: number): boolean {
  if (length >= 8) {
    const last = length - 8;
    for (let at = 0; at < last; at += 8) if (!isSameEight(a + at, b + at)) return false;
    return isSameEight(a + last, b + last);
  }
  if (length >= 4) return isSameFour(a, b) && isSameFour(a + length - 4, b + length - 4);
  for (let at = 0; at < length; at++) if (view.getUint8(a + at) !== view.getUint8(b + at)) return false;
  return true;
}

function isSameEight(a: number, b: number): boolean {
  const first = view.getInt32(a, true) ^ view.getInt32(b, true);
  return (first | (view.getInt32(a + 4, true) ^ view.getInt32(b + 4, true))) === 0;
}

function isSameFour(a: number, b: number): boolean {
  return view.getInt32(a, true) === view.getInt32(b, true);
}

/** Texts up to this length are hashed as fast by one lane. */
const LONG_TEXT = 64;

/** Hashes a range to 32 bits. The seed keeps senders from choosing texts with equal hashes. */
export function hashOf(start: number, length: number, seed: number): number {
  let hash = seed ^ length;
  if (length < 4) {
    for (let at = 0; at < length; at++) hash = Math.imul(hash ^ view.getUint8(start + at), 0x01000193);
  } else {
    const last = start + length - 4;
    let at = start;
    if (length > LONG_TEXT) {
      // Two independent lanes halve the time for a long text.
      let other = ~seed;
      for (; at < last - 4; at += 8) {
        hash = hashedWith(hash, view.getInt32(at, true));
        other = hashedWith(other, view.getInt32(at + 4, true));
      }
      hash = hashedWith(hash, other);
    }
    for (; at < last; at += 4) hash = hashedWith(hash, view.getInt32(at, true));
    hash = Math.imul(hash ^ view.getInt32(last, true), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

function hashedWith(hash: number, four: number): number {
  const mixed = Math.imul(hash ^ four, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** Writes a text as UTF-8. @returns the end of the text */
export function putText(to: number, text: string): number {
  return to + buffer.write(text, to);
}

/** Returns the size of an unsigned 32-bit integer as a varint, in bytes. */
export function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** Writes an integer of up to 31 bits as a varint. @returns its end */
export function putVarint(start: number, value: number): number {
  let to = start;
  let rest = value;
  while (rest > 0x7f) {
    view.setUint8(to++, (rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  view.setUint8(to++, rest);
  return to;
}

export function textAt(start: number, end: number): string {
  return buffer.toString('utf8', start, end);
}

/** A range of constant bytes in the arena. */
export interface Range {
  readonly at: number;
  readonly length: number;
}

/** Constant bytes in a part of the arena; they can only be removed all at once. */
export class Constants {
  /** Incremented by `clear`; ranges of an earlier generation are no longer valid. */
  generation = 0;
  private end: number;
  private readonly known = new Map<string, Range>();

  /** @param start of the part of the arena; @param limit its end */
  constructor(
    private readonly start: number,
    private readonly limit: number,
  ) {
    this.end = start;
  }

  /** Whether there is room for `byteCount` bytes more. */
  hasRoom(byteCount: number): boolean {
    return this.end + byteCount + SLACK <= this.limit;
  }

  /** Stores a text; an equal text is stored only once. @throws RangeError if there is no room */
  add(text: string): Range {
    const known = this.known.get(text);
    if (known !== undefined) return known;
    const length = Buffer.byteLength(text);
    if (!this.hasRoom(length)) throw new RangeError('too many constants');
    const range = { at: this.end, length: buffer.write(text, this.end) };
    // Copies of several bytes at a time read a few bytes of the next text.
    this.end += length + 8;
    this.known.set(text, range);
    return range;
  }

  clear(): void {
    this.generation += 1;
    this.known.clear();
    this.end = this.start;
  }
}

/** The part for constants of the line writer; constants of layouts follow it. */
const FIXED_BYTES = 64 * 1024;
const FIXED = new Constants(REGION.constants, FIXED_BYTES);
export const LAYOUT_CONSTANTS = new Constants(FIXED_BYTES, REGION.bodies);

/** Stores a constant that is never removed. */
export function constant(text: string): Range {
  return FIXED.add(text);
}

/** The two hexadecimal digits of each byte, as a 16-bit number. */
const HEX = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(0),
);
/** The four decimal digits of each number below 10,000, as a 32-bit number. */
const DIGITS = new Int32Array(10_000).fill(0x30303030);
// The digits of a number are those of its tenth, moved by one position, and its last digit.
for (let number = 1; number < DIGITS.length; number++) {
  const tenth = Math.floor(number / 10);
  DIGITS[number] = ((DIGITS[tenth] as number) >>> 8) | ((0x30 + number - 10 * tenth) << 24);
}

/** Writes bytes as hexadecimal digits. @returns their end */
export function putHex(to: number, from: number, length: number): number {
  for (let at = 0; at < length; at++) view.setUint16(to + 2 * at, HEX[view.getUint8(from + at)] as number, true);
  return to + 2 * length;
}

/** Writes a 64-bit id, given as two halves, as 16 hexadecimal digits. @returns their end */
export function putId(to: number, high: number, low: number): number {
  for (let shift = 24, at = to; shift >= 0; shift -= 8, at += 2) {
    view.setUint16(at, HEX[(high >>> shift) & 255] as number, true);
    view.setUint16(at + 8, HEX[(low >>> shift) & 255] as number, true);
  }
  return to + 16;
}

/** A cache of the seconds and nanoseconds that the high halves of Unix times stand for, by their last four bits. A high half changes every 4.3 seconds. */
const HIGHS = new Int32Array(16);
const SECONDS = new Float64Array(16);
const NANOS = new Float64Array(16);

/** Returns the cache's slot of a high half. */
function highSlot(high: number): number {
  const slot = high & 15;
  if (high !== HIGHS[slot]) {
    const start = BigInt(high >>> 0) << 32n;
    HIGHS[slot] = high;
    SECONDS[slot] = Number(start / 10n ** 9n);
    NANOS[slot] = Number(start % 10n ** 9n);
  }
  return slot;
}

/** Splits Unix nanoseconds, given as two halves, into seconds and nanoseconds. */
export class NanosClock {
  seconds = 0;
  nanos = 0;

  read(high: number, low: number): void {
    const slot = highSlot(high);
    const nanos = (NANOS[slot] as number) + (low >>> 0);
    // V8 allocates an object for each number that is no 32-bit integer when it is passed on.
    const more = (nanos / 1e9) | 0;
    this.seconds = (SECONDS[slot] as number) + more;
    this.nanos = (nanos - more * 1e9) | 0;
  }
}

/** The high halves of times with 19 digits: up to the year 2286. */
const MIN_HIGH = Number((10n ** 18n) >> 32n) + 1;
const MAX_HIGH = Number((10n ** 19n) >> 32n) - 1;

/** Writes 64 bits as decimal digits; times with 19 digits are written four digits at a time. @returns their end */
export function putDecimal(to: number, low: number, high: number): number {
  if (high >>> 0 < MIN_HIGH || high >>> 0 > MAX_HIGH) return putAnyDecimal(to, low, high);
  const slot = highSlot(high);
  const nanos = (NANOS[slot] as number) + (low >>> 0);
  const more = Math.floor(nanos / 1e9);
  const seconds = (SECONDS[slot] as number) + more;
  const rest = nanos - more * 1e9;
  const upper = Math.floor(seconds / 100);
  // Ten digits of seconds, nine of nanoseconds.
  const middle = ((seconds - upper * 100) * 10 + Math.floor(rest / 1e8)) | 0;
  putEight(to, upper | 0);
  view.setInt32(to + 7, ((DIGITS[middle] as number) & ~0xff) | view.getUint8(to + 7), true);
  putEight(to + 11, (rest % 1e8) | 0);
  return to + 19;
}

function putAnyDecimal(to: number, low: number, high: number): number {
  return to + buffer.write(String((BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)), to, 'latin1');
}

function putEight(to: number, value: number): void {
  const upper = (value / 10_000) | 0;
  view.setInt32(to, DIGITS[upper] as number, true);
  view.setInt32(to + 4, DIGITS[value - upper * 10_000] as number, true);
}
