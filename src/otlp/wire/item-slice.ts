import { grown } from '../../core/bytes.js';
import { isSame } from '../../record/record-line.js';
import { UNUSUAL, type WireCursor } from '../any-value.js';
import { BRIDGE_PREFIX } from '../bridge-attributes.js';
import { FIXED32, FIXED64, LENGTH, VARINT } from '../wire-type.js';

/** Attributes for which there is room at first; the engine's spans have about twenty. */
const USUAL_ATTRIBUTES = 128;

const STRING_VALUE = 1;
const BOOL_VALUE = 2;
const INT_VALUE = 3;

/** What kind of value an attribute has: its bytes are the text, the flag or the number; what others are is not looked at. */
export const STRING = 0;
export const BOOL = 1;
export const INT = 2;
const OTHER = 3;

/** Where the attributes of one span or log record stand in a request's bytes. */
export class AttributeSlice {
  count = 0;
  /** Whether each has a key that is no bridge's, and a text, a flag or an integer. */
  isUsual = true;
  keyStart = new Int32Array(USUAL_ATTRIBUTES);
  keyEnd = new Int32Array(USUAL_ATTRIBUTES);
  valueKind = new Uint8Array(USUAL_ATTRIBUTES);
  /** Begin and end of a string value, or of a varint. */
  valueStart = new Int32Array(USUAL_ATTRIBUTES);
  valueEnd = new Int32Array(USUAL_ATTRIBUTES);

  clear(): void {
    this.count = 0;
    this.isUsual = true;
  }

  /** Adds the attribute that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    if (this.count === this.keyStart.length) this.grow();
    const index = this.count++;
    let tag = cursor.position < end ? cursor.varint32(end) : 0;
    if (tag === ((1 << 3) | LENGTH)) {
      const keyEnd = cursor.lengthEnd(end);
      const { bytes, position } = cursor;
      if (isOfBridge(bytes, position, keyEnd)) this.isUsual = false;
      this.keyStart[index] = position;
      this.keyEnd[index] = keyEnd;
      cursor.position = keyEnd;
      tag = keyEnd < end ? cursor.varint32(end) : 0;
    } else this.keyStart[index] = this.keyEnd[index] = cursor.position;
    if (tag === ((2 << 3) | LENGTH)) {
      if (cursor.lengthEnd(end) !== end) throw UNUSUAL;
      this.readValue(cursor, index, end);
    } else if (tag === 0 && cursor.position === end) this.setOther(index);
    else throw UNUSUAL;
  }

  key(from: Buffer, index: number): string {
    return from.toString('utf8', this.keyStart[index], this.keyEnd[index]);
  }

  /** `undefined` for what is no text. */
  textAt(from: Buffer, index: number): string | undefined {
    if (this.valueKind[index] !== STRING) return undefined;
    return from.toString('utf8', this.valueStart[index], this.valueEnd[index]);
  }

  private readValue(cursor: WireCursor, index: number, end: number): void {
    const start = cursor.position;
    const tag = start < end ? cursor.varint32(end) : 0;
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
      // Nobody spends more than a byte on a flag; zero could be written with more.
      if (this.valueKind[index] === BOOL && end - (this.valueStart[index] as number) > 1) throw UNUSUAL;
    } else {
      this.setOther(index);
      cursor.position = end;
    }
    if (cursor.position !== end) throw UNUSUAL;
  }

  private setOther(index: number): void {
    this.valueKind[index] = OTHER;
    this.isUsual = false;
  }

  private grow(): void {
    this.keyStart = grown(this.keyStart);
    this.keyEnd = grown(this.keyEnd);
    this.valueKind = grown(this.valueKind);
    this.valueStart = grown(this.valueStart);
    this.valueEnd = grown(this.valueEnd);
  }
}

const BRIDGE = Buffer.from(BRIDGE_PREFIX);

/** Whether a name begins as those that a bridge gives. */
function isOfBridge(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start + 1] !== BRIDGE[1] || end - start < BRIDGE.length) return false;
  return isSame(BRIDGE, bytes, start, start + BRIDGE.length);
}

/** The integer whose varint stands there. */
export function integerAt(from: Buffer, start: number, end: number): bigint {
  let value = 0n;
  for (let index = end - 1; index >= start; index--) value = (value << 7n) | BigInt((from[index] as number) & 0x7f);
  return BigInt.asIntN(64, value);
}

/**
 * Where the parts of one OTLP span stand in a request's bytes. One object, filled anew for each span.
 */
export class SpanSlice {
  /** -1 for none, and for one that no record can have; so are the other ids. */
  traceId = -1;
  spanId = -1;
  parentSpanId = -1;
  private hasOddLink = false;
  nameStart = 0;
  nameEnd = 0;
  /** -1 for zero. */
  startTime = -1;
  endTime = -1;
  statusCode = 0;
  messageStart = 0;
  messageEnd = 0;
  readonly attributes = new AttributeSlice();
  /** Those whose ids a record can have; mostly none. */
  links: LinkSlice[] = NO_LINKS;
  private isPlain = true;

  /** Reads the span that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    this.traceId = this.spanId = this.startTime = this.endTime = this.parentSpanId = -1;
    this.nameStart = this.nameEnd = this.messageStart = this.messageEnd = 0;
    this.statusCode = 0;
    this.links = NO_LINKS;
    this.hasOddLink = false;
    this.isPlain = true;
    this.attributes.clear();
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
          this.parentSpanId = idOf(cursor, end, 8);
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
        case (11 << 3) | LENGTH:
          this.isPlain = false;
          cursor.skip(LENGTH, end);
          break;
        case (13 << 3) | LENGTH:
          this.readLink(cursor, cursor.lengthEnd(end));
          break;
        case (15 << 3) | LENGTH:
          this.readStatus(cursor, cursor.lengthEnd(end));
          break;
        // Trace state, kind, numbers of what was dropped, flags.
        case (3 << 3) | LENGTH:
        case (6 << 3) | VARINT:
        case (10 << 3) | VARINT:
        case (12 << 3) | VARINT:
        case (14 << 3) | VARINT:
        case (16 << 3) | FIXED32:
          cursor.skip(tag & 7, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (cursor.position !== end) throw UNUSUAL;
  }

  /** Whether this is all of it that counts: it has no events, its links no attributes, and its attributes are as usual. */
  get isUsual(): boolean {
    return this.isPlain && this.attributes.isUsual;
  }

  /** Whether an id in it has another length than such ids have: there are receivers that refuse all of a request for one. */
  get hasOddId(): boolean {
    return this.hasOddLink || this.traceId === ODD_ID || this.spanId === ODD_ID || this.parentSpanId === ODD_ID;
  }

  private readLink(cursor: WireCursor, end: number): void {
    let traceId = -1;
    let spanId = -1;
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      switch (tag) {
        case (1 << 3) | LENGTH:
          traceId = idOf(cursor, end, 16);
          break;
        case (2 << 3) | LENGTH:
          spanId = idOf(cursor, end, 8);
          break;
        case (4 << 3) | LENGTH:
          this.isPlain = false;
          cursor.skip(LENGTH, end);
          break;
        case (3 << 3) | LENGTH:
        case (5 << 3) | VARINT:
        case (6 << 3) | FIXED32:
          cursor.skip(tag & 7, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (traceId === ODD_ID || spanId === ODD_ID) this.hasOddLink = true;
    if (traceId < 0 || spanId < 0) return;
    if (this.links === NO_LINKS) this.links = [];
    this.links.push({ traceId, spanId });
  }

  private readStatus(cursor: WireCursor, end: number): void {
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      if (tag === ((2 << 3) | LENGTH)) {
        this.messageEnd = cursor.lengthEnd(end);
        this.messageStart = cursor.position;
        cursor.position = this.messageEnd;
      } else if (tag === ((3 << 3) | VARINT)) this.statusCode = cursor.int32(end);
      else throw UNUSUAL;
    }
  }
}

/** A link of a span, without attributes: where its ids stand. */
interface LinkSlice {
  readonly traceId: number;
  readonly spanId: number;
}

const NO_LINKS: LinkSlice[] = [];

/** Where the parts of one OTLP log record stand in a request's bytes, as `SpanSlice` has them of a span. */
export class LogSlice {
  /** -1 for none, and for one that no record can have; so is its span's. */
  traceId = -1;
  spanId = -1;
  /** Of its time, or of when it was observed where it has none; -1 where it has neither. */
  time = -1;
  severityNumber = 0;
  severityStart = 0;
  severityEnd = 0;
  bodyStart = 0;
  bodyEnd = 0;
  eventNameStart = 0;
  eventNameEnd = 0;
  readonly attributes = new AttributeSlice();

  private isPlain = true;

  /** Whether this is all of it that counts: its body is a text, and its attributes are as usual. */
  get isUsual(): boolean {
    return this.isPlain && this.attributes.isUsual;
  }

  /** Whether an id in it has another length than such ids have. */
  get hasOddId(): boolean {
    return this.traceId === ODD_ID || this.spanId === ODD_ID;
  }

  /** Reads the log record that ends at `end`. @throws UNUSUAL */
  read(cursor: WireCursor, end: number): void {
    let observed = -1;
    this.traceId = this.spanId = this.time = -1;
    this.severityNumber = this.severityStart = this.severityEnd = this.bodyStart = this.bodyEnd = 0;
    this.eventNameStart = this.eventNameEnd = 0;
    this.isPlain = true;
    this.attributes.clear();
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      switch (tag) {
        case (1 << 3) | FIXED64:
          this.time = cursor.position;
          cursor.skip(FIXED64, end);
          break;
        case (2 << 3) | VARINT:
          this.severityNumber = cursor.int32(end);
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
          this.spanId = idOf(cursor, end, 8);
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
        // The number of dropped attributes, flags.
        case (7 << 3) | VARINT:
        case (8 << 3) | FIXED32:
          cursor.skip(tag & 7, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (this.time < 0 || isZero(cursor.bytes, this.time, 8)) this.time = observed;
    if (cursor.position !== end) throw UNUSUAL;
  }

  private readBody(cursor: WireCursor, end: number): void {
    this.bodyStart = this.bodyEnd = end;
    if (cursor.position === end) return;
    if (cursor.varint32(end) !== ((STRING_VALUE << 3) | LENGTH)) this.isPlain = false;
    else if (cursor.lengthEnd(end) === end) this.bodyStart = cursor.position;
    else throw UNUSUAL;
    cursor.position = end;
  }
}

/** Stands for an id of another length than such ids have. */
const ODD_ID = -2;

/** Where an id stands; -1 for none, and for zeros, which is none; `ODD_ID` for one of another length. */
function idOf(cursor: WireCursor, end: number, length: number): number {
  const idEnd = cursor.lengthEnd(end);
  const start = cursor.position;
  cursor.position = idEnd;
  if (idEnd - start !== length) return idEnd === start ? -1 : ODD_ID;
  return isZero(cursor.bytes, start, length) ? -1 : start;
}

function isZero(bytes: Uint8Array, start: number, length: number): boolean {
  for (let index = start; index < start + length; index++) if (bytes[index] !== 0) return false;
  return true;
}
