import { keyText } from '../../otlp/wire/layouts.js';
import { constant, copyBytes, copyText, putVarint, type Range, varintSize, view } from '../../record/arena.js';

/** Attributes in OTLP's protobuf, written into the arena: a tag, a KeyValue with its lengths. */

/** Tags of attributes in a span, an event, a log record. */
export const AttributeTag = { span: 0x4a, event: 0x1a, log: 0x32 } as const;

/** How the values of an AnyValue begin. */
const TEXT = 0x0a;
const INTEGER = 0x18;
const DOUBLE = 0x21;

/** What a KeyValue begins with, for good: see `keyText`. */
export function keyOf(name: string): Range {
  return constant(keyText(name));
}

/** Copies an attribute under another tag. @returns the place behind it */
export function copyTagged(to: number, tag: number, start: number, end: number): number {
  view.setUint8(to, tag);
  return copyBytes(to + 1, start + 1, end - start - 1);
}

/** Writes a text. @returns the place behind it */
export function putTextAttribute(start: number, tag: number, key: Range, from: number, length: number): number {
  const valueLength = 1 + varintSize(length) + length;
  let to = putKey(start, tag, key, varintSize(valueLength) + valueLength);
  to = putVarint(to, valueLength);
  view.setUint8(to, TEXT);
  return copyText(putVarint(to + 1, length), from, length);
}

/** Writes a number: a whole one as an integer, as far as 64 bits hold it. @returns the place behind it */
export function putNumberAttribute(start: number, tag: number, key: Range, value: number): number {
  const isInteger = Number.isInteger(value) && Math.abs(value) < 2 ** 63;
  if (isInteger) return putIntegerAttribute(start, tag, key, value);
  const to = putKey(start, tag, key, 10);
  view.setUint8(to, 9);
  view.setUint8(to + 1, DOUBLE);
  view.setFloat64(to + 2, value, true);
  return to + 10;
}

function putIntegerAttribute(start: number, tag: number, key: Range, value: number): number {
  const isShort = value >= 0 && value <= 0x7fff_ffff;
  if (isShort) return putVarint(putIntegerHead(start, tag, key, varintSize(value)), value);
  const groups = sevenBitGroups(value);
  const to = putIntegerHead(start, tag, key, groups.length);
  for (const [index, group] of groups.entries()) {
    const isLast = index === groups.length - 1;
    view.setUint8(to + index, isLast ? group : group | 0x80);
  }
  return to + groups.length;
}

/** @param size of the integer, in bytes */
function putIntegerHead(start: number, tag: number, key: Range, size: number): number {
  const to = putKey(start, tag, key, 2 + size);
  view.setUint8(to, 1 + size);
  view.setUint8(to + 1, INTEGER);
  return to + 2;
}

/** 64 bits in groups of seven, the lowest first; negative numbers in two's complement. */
function sevenBitGroups(value: number): readonly number[] {
  const groups: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    groups.push(Number(rest & 0x7fn));
    rest >>= 7n;
  } while (rest > 0n);
  return groups;
}

function putKey(start: number, tag: number, key: Range, valueBytes: number): number {
  view.setUint8(start, tag);
  return copyText(putVarint(start + 1, key.length + valueBytes), key.at, key.length);
}
