import { type Attributes, type AttributeValue, type SpanStatus, TraceFlags } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import { GrowingBytes } from '../../core/bytes.js';
import { keyText } from '../../otlp/wire/layouts.js';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { constant, copyBytes, copyText, putVarint, type Range, varintSize, view } from '../../record/arena.js';

/**
 * Writes protobuf's wire format into bytes that grow as needed. Numbers and short texts go byte by byte: a call into
 * native code costs more than they do. Each method makes room for what it writes, except where it says otherwise.
 */
export class WireWriter extends GrowingBytes {
  /** A tag (of one byte up to field 15, of two bytes beyond). */
  tag(tag: number): void {
    this.varint(tag);
  }

  /** An unsigned integer of up to 32 bits. */
  varint(value: number): void {
    this.reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  /** A 64-bit integer, negative ones in two's complement; exact for every whole number that a double holds. */
  int64(value: number): void {
    if (value >= 0 && value <= 0xffffffff) {
      this.varint(value);
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    this.reserve(10);
    while (rest > 0x7fn) {
      this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  fixed32(value: number): void {
    this.reserve(4);
    this.bytes.writeUInt32LE(value, this.length);
    this.length += 4;
  }

  double(value: number): void {
    this.reserve(8);
    this.bytes.writeDoubleLE(value, this.length);
    this.length += 8;
  }

  /** Nanoseconds as fixed64, of seconds and nanoseconds: their product is put together from parts that a double holds. */
  time(seconds: number, nanos: number): void {
    this.reserve(8);
    const low16 = (seconds % 0x10000) * BILLION + nanos;
    const high = Math.floor(seconds / 0x10000) * BILLION;
    const low = low16 + (high % 0x10000) * 0x10000;
    this.bytes.writeUInt32LE(low % 0x1_0000_0000, this.length);
    const upper = Math.floor(high / 0x10000) + Math.floor(low / 0x1_0000_0000);
    this.bytes.writeUInt32LE(upper % 0x1_0000_0000, this.length + 4);
    this.length += 8;
  }

  /** Its length and a text's UTF-8. */
  text(text: string): void {
    const { length } = text;
    if (length > MAX_LOOP_LENGTH) {
      this.longText(text);
      return;
    }
    this.reserve(length + 1);
    const { bytes } = this;
    let at = this.length;
    bytes[at++] = length;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) {
        this.longText(text);
        return;
      }
      bytes[at++] = code;
    }
    this.length = at;
  }

  /** The bytes that hexadecimal digits spell, after their length. */
  hex(digits: string): void {
    const byteCount = digits.length / 2;
    this.reserve(byteCount + 1);
    this.bytes[this.length++] = byteCount;
    for (let index = 0; index < digits.length; index += 2) {
      this.bytes[this.length++] = (nibbleOf(digits.charCodeAt(index)) << 4) | nibbleOf(digits.charCodeAt(index + 1));
    }
  }

  /** A span id of two unsigned halves, after its length. */
  id(high: number, low: number): void {
    this.reserve(9);
    this.bytes[this.length++] = 8;
    this.bytes.writeInt32BE(high | 0, this.length);
    this.bytes.writeInt32BE(low | 0, this.length + 4);
    this.length += 8;
  }

  /** Bytes as they are, without their length. */
  raw(from: Uint8Array): void {
    this.reserve(from.length);
    this.bytes.set(from, this.length);
    this.length += from.length;
  }

  /** Begins a message whose length is not known yet. @returns where it begins, for `close`. */
  open(): number {
    this.reserve(1);
    return this.length++;
  }

  /** Ends a message: writes its length before it, and moves it where that takes more than one byte. */
  close(start: number): void {
    const byteCount = this.length - start - 1;
    const more = varintSize(byteCount) - 1;
    if (more > 0) {
      this.reserve(more);
      this.bytes.copyWithin(start + 1 + more, start + 1, this.length);
    }
    this.length = start;
    this.varint(byteCount);
    this.length += byteCount;
  }

  private longText(text: string): void {
    const start = this.open();
    this.reserve(text.length * 3);
    this.length += this.bytes.write(text, this.length, 'utf8');
    this.close(start);
  }
}

const BILLION = 1_000_000_000;
/** Up to here a loop over a text beats a call; also the longest length of one byte. */
const MAX_LOOP_LENGTH = 0x7f;

function nibbleOf(code: number): number {
  return code < 0x40 ? code - 0x30 : (code | 0x20) - 0x57;
}

const KEY = tagOf(1, LENGTH);
const VALUE = tagOf(2, LENGTH);
const STRING_VALUE = tagOf(1, LENGTH);
const BOOL_VALUE = tagOf(2, VARINT);
const INT_VALUE = tagOf(3, VARINT);
const DOUBLE_VALUE = tagOf(4, FIXED64);
const ARRAY_VALUE = tagOf(5, LENGTH);
const ARRAY_ITEM = tagOf(1, LENGTH);
const MAX_INT64 = 2 ** 63;

/** Writes attributes as OTLP's KeyValue messages. @param tag of the field that repeats them. */
export function encodeAttributes(out: WireWriter, tag: number, attributes: Attributes): void {
  for (const key in attributes) encodeAttribute(out, tag, key, attributes[key]);
}

/** Writes one attribute. */
export function encodeAttribute(out: WireWriter, tag: number, key: string, value: AttributeValue | undefined): void {
  out.tag(tag);
  const start = out.open();
  out.tag(KEY);
  out.text(key);
  out.tag(VALUE);
  encodeValue(out, value);
  out.close(start);
}

/** Writes an AnyValue with its length; whole numbers are integers, as OpenTelemetry's own serialiser has it. */
export function encodeValue(out: WireWriter, value: AttributeValue | null | undefined): void {
  const start = out.open();
  if (typeof value === 'string') {
    out.tag(STRING_VALUE);
    out.text(value);
  } else if (typeof value === 'boolean') {
    out.tag(BOOL_VALUE);
    out.varint(value ? 1 : 0);
  } else if (typeof value === 'number') {
    encodeNumber(out, value);
  } else if (Array.isArray(value)) {
    out.tag(ARRAY_VALUE);
    const list = out.open();
    for (const item of value) {
      out.tag(ARRAY_ITEM);
      encodeValue(out, item);
    }
    out.close(list);
  }
  out.close(start);
}

function encodeNumber(out: WireWriter, value: number): void {
  if (Number.isInteger(value) && value >= -MAX_INT64 && value < MAX_INT64) {
    out.tag(INT_VALUE);
    out.int64(value);
  } else {
    out.tag(DOUBLE_VALUE);
    out.double(value);
  }
}

/** Tag of a span in its ScopeSpans, and of a log record in its ScopeLogs. */
export const RECORD = tagOf(2, LENGTH);

/** Tags of OTLP's Span (opentelemetry/proto/trace/v1/trace.proto). */
export const SPAN = {
  traceId: tagOf(1, LENGTH),
  spanId: tagOf(2, LENGTH),
  parentSpanId: tagOf(4, LENGTH),
  name: tagOf(5, LENGTH),
  kind: tagOf(6, VARINT),
  startTime: tagOf(7, FIXED64),
  endTime: tagOf(8, FIXED64),
  attributes: tagOf(9, LENGTH),
  droppedAttributesCount: tagOf(10, VARINT),
  events: tagOf(11, LENGTH),
  droppedEventsCount: tagOf(12, VARINT),
  links: tagOf(13, LENGTH),
  droppedLinksCount: tagOf(14, VARINT),
  status: tagOf(15, LENGTH),
  flags: tagOf(16, FIXED32),
} as const;

/** A span's events, in order of time, and how many there was no room for. Each is as it stands in its span, tag and length included. */
export interface SpanEvents {
  readonly byteCount: number;
  readonly droppedCount: number;
  /** Writes one behind the other. */
  writeTo(out: WireWriter): void;
  /** Each as a text, with one byte in each character. */
  texts(): readonly string[];
}

/** Of a span without any. */
export const NO_EVENTS: SpanEvents = { byteCount: 0, droppedCount: 0, writeTo() {}, texts: () => [] };

/** Tags of a span's event, and of its fields. */
export const EVENT = {
  message: SPAN.events,
  time: tagOf(1, FIXED64),
  name: tagOf(2, LENGTH),
  attributes: tagOf(3, LENGTH),
  droppedAttributesCount: tagOf(4, VARINT),
} as const;

/** Tags of a link beside those that it shares with a span. */
export const LINK = {
  attributes: tagOf(4, LENGTH),
  droppedAttributesCount: tagOf(5, VARINT),
  flags: tagOf(6, FIXED32),
} as const;

const STATUS_MESSAGE = tagOf(2, LENGTH);
const STATUS_CODE = tagOf(3, VARINT);
/** SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK of trace.proto: it is known that no span of a run is remote. */
const KNOWS_IS_REMOTE = 0x100;
/** Flags of every span of a run, and of links to them. */
export const SAMPLED_FLAGS = TraceFlags.SAMPLED | KNOWS_IS_REMOTE;

/** Writes what comes last of a span. */
export function encodeSpanEnd(out: WireWriter, status: SpanStatus): void {
  out.tag(SPAN.status);
  encodeStatus(out, status);
  out.tag(SPAN.flags);
  out.fixed32(SAMPLED_FLAGS);
}

/** Writes an event, its tag and length included. */
export function encodeEvent(out: WireWriter, event: TimedEvent): void {
  out.tag(EVENT.message);
  const start = out.open();
  out.tag(EVENT.time);
  out.time(event.time[0], event.time[1]);
  out.tag(EVENT.name);
  out.text(event.name);
  if (event.attributes !== undefined) encodeAttributes(out, EVENT.attributes, event.attributes);
  out.tag(EVENT.droppedAttributesCount);
  out.varint(event.droppedAttributesCount ?? 0);
  out.close(start);
}

/** Writes a link to a span of a run, its tag and length included. */
export function encodeLink(out: WireWriter, traceId: string, spanId: string, attributes: Attributes): void {
  out.tag(SPAN.links);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(traceId);
  out.tag(SPAN.spanId);
  out.hex(spanId);
  encodeAttributes(out, LINK.attributes, attributes);
  out.tag(LINK.droppedAttributesCount);
  out.varint(0);
  out.tag(LINK.flags);
  out.fixed32(SAMPLED_FLAGS);
  out.close(start);
}

function encodeStatus(out: WireWriter, status: SpanStatus): void {
  const start = out.open();
  if (status.message !== undefined && status.message !== '') {
    out.tag(STATUS_MESSAGE);
    out.text(status.message);
  }
  out.tag(STATUS_CODE);
  out.varint(status.code);
  out.close(start);
}

/** Tags of OTLP's LogRecord (opentelemetry/proto/logs/v1/logs.proto). */
export const LOG = {
  time: tagOf(1, FIXED64),
  severityNumber: tagOf(2, VARINT),
  severityText: tagOf(3, LENGTH),
  body: tagOf(5, LENGTH),
  attributes: tagOf(6, LENGTH),
  droppedAttributesCount: tagOf(7, VARINT),
  flags: tagOf(8, FIXED32),
  traceId: tagOf(9, LENGTH),
  spanId: tagOf(10, LENGTH),
  observedTime: tagOf(11, FIXED64),
  eventName: tagOf(12, LENGTH),
} as const;

/** Writes a text unless it is empty. */
export function optionalText(out: WireWriter, tag: number, text: string | undefined): void {
  if (text === undefined || text === '') return;
  out.tag(tag);
  out.text(text);
}

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

/** Copies an attribute under another tag. @returns the offset behind it */
export function copyTagged(to: number, tag: number, start: number, end: number): number {
  view.setUint8(to, tag);
  return copyBytes(to + 1, start + 1, end - start - 1);
}

/** Writes a text. @returns the offset behind it */
export function putTextAttribute(start: number, tag: number, key: Range, from: number, length: number): number {
  const valueLength = 1 + varintSize(length) + length;
  let to = putKey(start, tag, key, varintSize(valueLength) + valueLength);
  to = putVarint(to, valueLength);
  view.setUint8(to, TEXT);
  return copyText(putVarint(to + 1, length), from, length);
}

/** Writes a number: a whole one as an integer, as far as 64 bits hold it. @returns the offset behind it */
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
