import { FIXED32, FIXED64, LENGTH, VARINT } from '../../otlp/wire-type.js';
import { UNUSUAL, type WireCursor } from './wire-cursor.js';

/** How many attributes of a span or log record the fast path takes. */
const MAX_ATTRIBUTES = 128;

const STRING_VALUE = 1;
const BOOL_VALUE = 2;
const INT_VALUE = 3;

/** What kind of value an attribute has. Doubles, lists, maps and bytes are left to the general decoder: the engine has none. */
export const STRING = 0;
export const BOOL = 1;
export const INT = 2;

/** Where the attributes of one span or log record stand in a request's bytes. */
export class AttributeSlice {
  count = 0;
  readonly keyStart = new Int32Array(MAX_ATTRIBUTES);
  readonly keyEnd = new Int32Array(MAX_ATTRIBUTES);
  readonly valueKind = new Uint8Array(MAX_ATTRIBUTES);
  /** Begin and end of a string value, or begin of a varint. */
  readonly valueStart = new Int32Array(MAX_ATTRIBUTES);
  readonly valueEnd = new Int32Array(MAX_ATTRIBUTES);

  /** Adds the attribute that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    const index = this.count++;
    if (index >= MAX_ATTRIBUTES) throw UNUSUAL;
    if (cursor.varint32(end) !== ((1 << 3) | LENGTH)) throw UNUSUAL;
    const keyEnd = cursor.lengthEnd(end);
    this.keyStart[index] = cursor.position;
    this.keyEnd[index] = keyEnd;
    cursor.position = keyEnd;
    if (cursor.position >= end || cursor.varint32(end) !== ((2 << 3) | LENGTH)) throw UNUSUAL;
    if (cursor.lengthEnd(end) !== end) throw UNUSUAL;
    this.readValue(cursor, index, end);
  }

  private readValue(cursor: WireCursor, index: number, end: number): void {
    const tag = cursor.varint32(end);
    if (tag === ((STRING_VALUE << 3) | LENGTH)) {
      const valueEnd = cursor.lengthEnd(end);
      this.valueKind[index] = STRING;
      this.valueStart[index] = cursor.position;
      this.valueEnd[index] = valueEnd;
      cursor.position = valueEnd;
    } else if (tag === ((BOOL_VALUE << 3) | VARINT) || tag === ((INT_VALUE << 3) | VARINT)) {
      this.valueKind[index] = tag === ((BOOL_VALUE << 3) | VARINT) ? BOOL : INT;
      this.valueStart[index] = cursor.position;
      cursor.skip(VARINT, end);
      this.valueEnd[index] = cursor.position;
    } else throw UNUSUAL;
    if (cursor.position !== end) throw UNUSUAL;
  }
}

/**
 * Where the parts of one OTLP span stand in a request's bytes. One object, filled anew for each span.
 * Only shapes that the engine sends are taken: ids of the right length, no trace state, no events.
 */
export class SpanSlice {
  traceId = 0;
  spanId = 0;
  /** -1 for none. */
  parentSpanId = -1;
  nameStart = 0;
  nameEnd = 0;
  startTime = 0;
  endTime = 0;
  statusCode = 0;
  messageStart = 0;
  messageEnd = 0;
  linkCount = 0;
  readonly attributes = new AttributeSlice();
  /** Of each link: begin of trace id and span id. */
  readonly links = new Int32Array(2 * MAX_ATTRIBUTES);
  /** Reads the span that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    this.traceId = this.spanId = this.startTime = this.endTime = this.parentSpanId = -1;
    this.nameStart = this.nameEnd = this.messageStart = this.messageEnd = 0;
    this.statusCode = this.linkCount = this.attributes.count = 0;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      switch (tag) {
        case (1 << 3) | LENGTH:
          this.traceId = idOf(cursor, end, 16);
          break;
        case (2 << 3) | LENGTH:
          this.spanId = idOf(cursor, end, 8);
          break;
        case (4 << 3) | LENGTH:
          this.parentSpanId = optionalId(cursor, end);
          break;
        case (5 << 3) | LENGTH:
          this.nameEnd = cursor.lengthEnd(end);
          this.nameStart = cursor.position;
          cursor.position = this.nameEnd;
          break;
        case (7 << 3) | FIXED64:
          this.startTime = cursor.position;
          cursor.skip(FIXED64, end);
          break;
        case (8 << 3) | FIXED64:
          this.endTime = cursor.position;
          cursor.skip(FIXED64, end);
          break;
        case (9 << 3) | LENGTH:
          this.attributes.read(cursor, cursor.lengthEnd(end));
          break;
        case (13 << 3) | LENGTH:
          this.readLink(cursor, cursor.lengthEnd(end));
          break;
        case (15 << 3) | LENGTH:
          this.readStatus(cursor, cursor.lengthEnd(end));
          break;
        case (6 << 3) | VARINT:
        case (16 << 3) | 5:
          cursor.skip(tag & 7, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (cursor.position !== end || this.traceId < 0 || this.spanId < 0) throw UNUSUAL;
    if (this.startTime < 0 || this.endTime < 0) throw UNUSUAL;
  }

  private readLink(cursor: WireCursor, end: number): void {
    if (this.linkCount >= MAX_ATTRIBUTES) throw UNUSUAL;
    const at = 2 * this.linkCount++;
    let ids = 0;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      if (tag === ((1 << 3) | LENGTH)) {
        this.links[at] = idOf(cursor, end, 16);
        ids |= 1;
      } else if (tag === ((2 << 3) | LENGTH)) {
        this.links[at + 1] = idOf(cursor, end, 8);
        ids |= 2;
      } else if (tag === ((6 << 3) | 5)) cursor.skip(5, end);
      else throw UNUSUAL;
    }
    if (ids !== 3) throw UNUSUAL;
  }

  private readStatus(cursor: WireCursor, end: number): void {
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      if (tag === ((2 << 3) | LENGTH)) {
        this.messageEnd = cursor.lengthEnd(end);
        this.messageStart = cursor.position;
        cursor.position = this.messageEnd;
      } else if (tag === ((3 << 3) | VARINT)) this.statusCode = cursor.varint32(end);
      else throw UNUSUAL;
    }
  }
}

/** Where the parts of one OTLP log record stand in a request's bytes, as `SpanSlice` has them of a span. */
export class LogSlice {
  traceId = 0;
  /** -1 for none. */
  spanId = -1;
  /** Of its time, or of when it was observed where it has none. */
  time = 0;
  severityNumber = 0;
  severityStart = 0;
  severityEnd = 0;
  bodyStart = 0;
  bodyEnd = 0;
  eventNameStart = 0;
  eventNameEnd = 0;
  readonly attributes = new AttributeSlice();

  /** Reads the log record that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    let observed = -1;
    this.traceId = this.spanId = this.time = -1;
    this.severityNumber = this.severityStart = this.severityEnd = this.bodyStart = this.bodyEnd = 0;
    this.eventNameStart = this.eventNameEnd = this.attributes.count = 0;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      switch (tag) {
        case (1 << 3) | FIXED64:
          this.time = cursor.position;
          cursor.skip(FIXED64, end);
          break;
        case (2 << 3) | VARINT:
          this.severityNumber = cursor.varint32(end);
          break;
        case (3 << 3) | LENGTH:
          this.severityEnd = cursor.lengthEnd(end);
          this.severityStart = cursor.position;
          cursor.position = this.severityEnd;
          break;
        case (5 << 3) | LENGTH:
          this.readBody(cursor, cursor.lengthEnd(end));
          break;
        case (6 << 3) | LENGTH:
          this.attributes.read(cursor, cursor.lengthEnd(end));
          break;
        case (9 << 3) | LENGTH:
          this.traceId = idOf(cursor, end, 16);
          break;
        case (10 << 3) | LENGTH:
          this.spanId = optionalId(cursor, end);
          break;
        case (11 << 3) | FIXED64:
          observed = cursor.position;
          cursor.skip(FIXED64, end);
          break;
        case (12 << 3) | LENGTH:
          this.eventNameEnd = cursor.lengthEnd(end);
          this.eventNameStart = cursor.position;
          cursor.position = this.eventNameEnd;
          break;
        case (7 << 3) | VARINT:
        case (8 << 3) | FIXED32:
          cursor.skip(tag & 7, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (this.time < 0 || isZero(cursor.bytes, this.time, 8)) this.time = observed;
    if (cursor.position !== end || this.traceId < 0 || this.time < 0) throw UNUSUAL;
  }

  /** A text, or nothing. */
  private readBody(cursor: WireCursor, end: number): void {
    this.bodyStart = this.bodyEnd = end;
    if (cursor.position === end) return;
    if (cursor.varint32(end) !== ((STRING_VALUE << 3) | LENGTH) || cursor.lengthEnd(end) !== end) throw UNUSUAL;
    this.bodyStart = cursor.position;
    cursor.position = end;
  }
}

function idOf(cursor: WireCursor, end: number, length: number): number {
  const start = cursor.position;
  if (cursor.lengthEnd(end) !== start + 1 + length) throw UNUSUAL;
  cursor.position = start + 1 + length;
  if (isZero(cursor.bytes, start + 1, length)) throw UNUSUAL;
  return start + 1;
}

/** Where a span's id stands; -1 for an empty one or zeros, which is none. */
function optionalId(cursor: WireCursor, end: number): number {
  const idEnd = cursor.lengthEnd(end);
  const start = cursor.position;
  if (idEnd === start) return -1;
  if (idEnd !== start + 8) throw UNUSUAL;
  cursor.position = idEnd;
  return isZero(cursor.bytes, start, 8) ? -1 : start;
}

function isZero(bytes: Uint8Array, start: number, length: number): boolean {
  for (let index = start; index < start + length; index++) if (bytes[index] !== 0) return false;
  return true;
}
