import type { Signal } from '../../record/record-batch.js';
import { UNUSUAL, type WireCursor } from '../any-value.js';
import type { NamedAttribute, NamedItem } from '../engine-recognition.js';
import { LENGTH } from '../wire-type.js';

/** Numbers of fields of a span and a log record. */
const FIELDS = {
  traces: { traceId: 1, spanId: 2, parentSpanId: 4, name: 5, attributes: 9, links: 13 },
  logs: { traceId: 9, spanId: 10, parentSpanId: -1, name: 12, attributes: 6, links: -1 },
} as const;
const LINK = { traceId: 1, spanId: 2 } as const;
const KEY = 1;
const VALUE = 2;
const STRING_VALUE = 1;

/** What a span or log record says of whose it is, and whether its ids can be passed on; nothing else of it is looked at. */
export interface ItemHead extends NamedItem {
  readonly hasTraceId: boolean;
  readonly hasSpanId: boolean;
  /** Whether an id in it has another length than such ids have. */
  readonly hasOddId: boolean;
}

/** Reads the head of the item that begins where the cursor stands and ends at `end`. @throws UNUSUAL */
export function readItemHead(signal: Signal, cursor: WireCursor, end: number): ItemHead {
  const numbers = FIELDS[signal];
  const { bytes } = cursor;
  const attributes: (readonly [number, number])[] = [];
  let [name, hasTraceId, hasSpanId, hasOddId] = ['', false, false, false];
  eachField(cursor, end, (number, from, to) => {
    if (number === numbers.traceId) {
      hasTraceId = isId(bytes, from, to, 16);
      hasOddId ||= isOdd(from, to, 16);
    } else if (number === numbers.spanId) {
      hasSpanId = isId(bytes, from, to, 8);
      hasOddId ||= isOdd(from, to, 8);
    } else if (number === numbers.parentSpanId) hasOddId ||= isOdd(from, to, 8);
    else if (number === numbers.name) name = bytes.toString('utf8', from, to);
    else if (number === numbers.attributes) attributes.push([from, to]);
    else if (number === numbers.links) hasOddId ||= hasOddLink(cursor, from, to);
  });
  const read = () => attributes.map(([from, to]) => namedAttribute(cursor, from, to));
  return { name, attributes: read, hasTraceId, hasSpanId, hasOddId };
}

function hasOddLink(cursor: WireCursor, start: number, end: number): boolean {
  let isOddLink = false;
  within(cursor, start, end, (number, from, to) => {
    if (number === LINK.traceId) isOddLink ||= isOdd(from, to, 16);
    else if (number === LINK.spanId) isOddLink ||= isOdd(from, to, 8);
  });
  return isOddLink;
}

function namedAttribute(cursor: WireCursor, start: number, end: number): NamedAttribute {
  const { bytes } = cursor;
  let key = '';
  let text: string | undefined;
  within(cursor, start, end, (number, from, to) => {
    if (number === KEY) key = bytes.toString('utf8', from, to);
    else if (number === VALUE) {
      within(cursor, from, to, (member, textStart, textEnd) => {
        text = member === STRING_VALUE ? bytes.toString('utf8', textStart, textEnd) : undefined;
      });
    }
  });
  return { key, text };
}

/** The same as `eachField`, from another place on; the cursor comes back. */
function within(
  cursor: WireCursor,
  start: number,
  end: number,
  visit: (number: number, from: number, to: number) => void,
): void {
  const { position } = cursor;
  cursor.position = start;
  eachField(cursor, end, visit);
  cursor.position = position;
}

/** Visits fields that have a length: their number, and where their content begins and ends. */
function eachField(cursor: WireCursor, end: number, visit: (number: number, from: number, to: number) => void): void {
  while (cursor.position < end) {
    const tag = cursor.tag(end);
    if ((tag & 7) !== LENGTH) {
      cursor.skip(tag & 7, end);
      continue;
    }
    const fieldEnd = cursor.lengthEnd(end);
    visit(tag >>> 3, cursor.position, fieldEnd);
    cursor.position = fieldEnd;
  }
  if (cursor.position !== end) throw UNUSUAL;
}

function isId(bytes: Buffer, start: number, end: number, length: number): boolean {
  return end - start === length && bytes.subarray(start, end).some((byte) => byte !== 0);
}

function isOdd(start: number, end: number, length: number): boolean {
  return end !== start && end - start !== length;
}
