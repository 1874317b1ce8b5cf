import { ByteSource, type GrowingBytes } from '../core/bytes.js';

/**
 * One block of memory in which records are decoded and their lines are written. A place in it is an integer, so what is in one
 * region is copied into another without a view, a string or an object. Pages of it that were never written to take no memory.
 */
const MIB = 1024 * 1024;

/** Where each region begins. */
export const REGION = {
  /** Constant bytes: keys, heads of lines. Place 0 means "none". */
  constants: 64,
  /** Lines of JSONL that are being read. */
  bodies: 8 * MIB,
  /** Lines of the record that is being written. */
  lines: 16 * MIB,
  /** Texts that are remembered, and what was made of each. */
  texts: 32 * MIB,
  /** Requests as they came, and items that wait. */
  items: 56 * MIB,
  /** What is being made, and is used before the next. */
  scratch: 88 * MIB,
  end: 104 * MIB,
} as const;

/** Bytes behind a range that reads and copies of several bytes at a time may touch. */
export const SLACK = 32;
/** The longest record whose lines surely have room. */
export const MAX_RECORD_BYTES = MIB;

const memory = new ArrayBuffer(REGION.end);
export const bytes = new Uint8Array(memory);
export const view = new DataView(memory);
export const buffer = Buffer.from(memory);
/** All of it, for those who read others' bytes, too. */
export const ARENA = new ByteSource(buffer);

/** Longer texts are copied by one call, which costs as much as a loop over so many bytes. */
const SHORT_TEXT = 176;

/**
 * Copies UTF-8 by doubles: none of its patterns is a number that a double would change. Up to 15 bytes behind the target are overwritten.
 * @returns the place behind the copy
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

/** Longer bytes are copied by one call. */
const SHORT_BYTES = 96;

/** Copies bytes of any kind. Up to 3 bytes behind the target are overwritten. @returns the place behind the copy */
export function copyBytes(to: number, from: number, length: number): number {
  if (length > SHORT_BYTES) bytes.copyWithin(to, from, from + length);
  else for (let at = 0; at < length; at += 4) view.setInt32(to + at, view.getInt32(from + at, true), true);
  return to + length;
}

/** Views that are kept have lengths in steps of so many bytes, up to this. */
const VIEW_STEP = 64;
const MAX_VIEW_STEPS = 256;

/**
 * Copies what is written at one place of the arena out of it, again and again, through views that are kept: making one
 * takes longer than such a copy.
 */
export class Outlet {
  private readonly views = new Array<Uint8Array | undefined>(MAX_VIEW_STEPS + 1).fill(undefined);

  constructor(private readonly start: number) {}

  /** Appends so many bytes to others, which grow where they have no room. */
  appendTo(target: GrowingBytes, byteCount: number): void {
    target.reserve(byteCount);
    const { length: at, bytes: into } = target;
    const steps = Math.ceil(byteCount / VIEW_STEP);
    // What is copied beyond the bytes is overwritten by what comes behind them.
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

/** Whether two ranges hold the same bytes. The last eight or four are compared together, though some of them were before. */
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

/** Shorter texts are hashed as fast four bytes after the other. */
const LONG_TEXT = 64;

/** A hash of a range, as 32 bits; the seed keeps senders from choosing texts that meet in one place. */
export function hashOf(start: number, length: number, seed: number): number {
  let hash = seed ^ length;
  if (length < 4) {
    for (let at = 0; at < length; at++) hash = Math.imul(hash ^ view.getUint8(start + at), 0x01000193);
  } else {
    const last = start + length - 4;
    let at = start;
    if (length > LONG_TEXT) {
      // Two hashes that do not wait for each other: of a long text that takes half the time.
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

/** Writes a text's UTF-8. @returns the place behind it */
export function putText(to: number, text: string): number {
  return to + buffer.write(text, to);
}

/** How many bytes an unsigned integer of up to 32 bits takes. */
export function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** Writes a varint of up to 31 bits. @returns the place behind it */
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

/** Constant bytes. */
export interface Range {
  readonly at: number;
  readonly length: number;
}

/** Constant bytes in a room of their own; all of them are forgotten together. */
export class Constants {
  /** How often all were forgotten: a range of before is not theirs any more. */
  generation = 0;
  private end: number;
  private readonly known = new Map<string, Range>();

  /** @param start of the room that they have; @param limit its end */
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

  /** Keeps a text; equal ones once. */
  add(text: string): Range {
    const known = this.known.get(text);
    if (known !== undefined) return known;
    const length = Buffer.byteLength(text);
    if (!this.hasRoom(length)) throw new RangeError('too many constants');
    const range = { at: this.end, length: buffer.write(text, this.end) };
    // What is copied by several bytes at a time reads a few bytes of the next one.
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

/** Room for the constants of the line writer itself; behind them stand those of layouts. */
const FIXED_BYTES = 64 * 1024;
const FIXED = new Constants(REGION.constants, FIXED_BYTES);
export const LAYOUT_CONSTANTS = new Constants(FIXED_BYTES, REGION.bodies);

/** Constant bytes for good. */
export function constant(text: string): Range {
  return FIXED.add(text);
}

/** Two hexadecimal digits of a byte, as one number. */
const HEX = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(0),
);
/** Four decimal digits, as one number. */
const DIGITS = new Int32Array(10_000).fill(0x30303030);
// A number's are those of a tenth of it, one place on, and its last one.
for (let number = 1; number < DIGITS.length; number++) {
  const tenth = Math.floor(number / 10);
  DIGITS[number] = ((DIGITS[tenth] as number) >>> 8) | ((0x30 + number - 10 * tenth) << 24);
}

/** Writes bytes in hexadecimal digits. @returns the place behind them */
export function putHex(to: number, from: number, length: number): number {
  for (let at = 0; at < length; at++) view.setUint16(to + 2 * at, HEX[view.getUint8(from + at)] as number, true);
  return to + 2 * length;
}

/** Writes an id of two halves. @returns the place behind it */
export function putId(to: number, high: number, low: number): number {
  for (let shift = 24, at = to; shift >= 0; shift -= 8, at += 2) {
    view.setUint16(at, HEX[(high >>> shift) & 255] as number, true);
    view.setUint16(at + 8, HEX[(low >>> shift) & 255] as number, true);
  }
  return to + 16;
}

/** What the higher halves of times are in seconds and nanoseconds, by their last four bits: each is that of 4.3 seconds. */
const HIGHS = new Int32Array(16);
const SECONDS = new Float64Array(16);
const NANOS = new Float64Array(16);

/** The slot above of a half. */
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

/** Unix nanoseconds of two halves as seconds and nanoseconds. */
export class NanosClock {
  seconds = 0;
  nanos = 0;

  read(high: number, low: number): void {
    const slot = highSlot(high);
    const nanos = (NANOS[slot] as number) + (low >>> 0);
    // Integers of 32 bits: V8 makes an object of any other number each time that it is handed on.
    const more = (nanos / 1e9) | 0;
    this.seconds = (SECONDS[slot] as number) + more;
    this.nanos = (nanos - more * 1e9) | 0;
  }
}

/** Halves of which times have 19 digits: up to the year 2286. */
const MIN_HIGH = Number((10n ** 18n) >> 32n) + 1;
const MAX_HIGH = Number((10n ** 19n) >> 32n) - 1;

/** Writes 64 bits in decimal digits. Times of our days have 19, which are written four at a time. @returns the place behind them */
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
