import { grown } from '../../core/bytes.js';
import type { JsonObject } from '../../record/attributes.js';
import { readAnyValue, readKeyValue, UNUSUAL, valueJson, type WireCursor } from '../any-value.js';
import { BRIDGE_PREFIX } from '../bridge-attributes.js';
import type { AnyValue, KeyValue } from '../export-request.js';
import { FIXED32, FIXED64, LENGTH, VARINT } from '../wire-type.js';

/** Attributes for which there is room at first; the engine's spans have about twenty. */
const USUAL_ATTRIBUTES = 128;

const STRING_VALUE = 1;
const BOOL_VALUE = 2;
const INT_VALUE = 3;

/** What kind of value an attribute has: its bytes are the text, the flag or the number; doubles, lists, maps and bytes are read at once, the engine has none. */
export const STRING = 0;
export const BOOL = 1;
export const INT = 2;
export const OTHER = 3;

/** Where the attributes of one span or log record stand in a request's bytes. */
export class AttributeSlice {
  count = 0;
  keyStart = new Int32Array(USUAL_ATTRIBUTES);
  keyEnd = new Int32Array(USUAL_ATTRIBUTES);
  valueKind = new Uint8Array(USUAL_ATTRIBUTES);
  /** Begin and end of a string value, or of a varint. */
  valueStart = new Int32Array(USUAL_ATTRIBUTES);
  valueEnd = new Int32Array(USUAL_ATTRIBUTES);
  /** By index: values of the kind `OTHER`. */
  readonly others = new Map<number, AnyValue>();
  /** Whether one of the names begins as those that a bridge gives. */
  private mayHaveBridge = false;

  clear(): void {
    this.count = 0;
    this.mayHaveBridge = false;
    if (this.others.size > 0) this.others.clear();
  }

  /** Adds the attribute that ends at `end`. @throws UNUSUAL, OtlpDecodeError */
  read(cursor: WireCursor, end: number): void {
    if (this.count === this.keyStart.length) this.grow();
    const index = this.count++;
    let tag = cursor.position < end ? cursor.varint32(end) : 0;
    if (tag === ((1 << 3) | LENGTH)) {
      const keyEnd = cursor.lengthEnd(end);
      const { bytes, position } = cursor;
      if (bytes[position] === LETTER_R && bytes[position + 1] === LETTER_U) this.mayHaveBridge = true;
      this.keyStart[index] = position;
      this.keyEnd[index] = keyEnd;
      cursor.position = keyEnd;
      tag = keyEnd < end ? cursor.varint32(end) : 0;
    } else this.keyStart[index] = this.keyEnd[index] = cursor.position;
    if (tag === ((2 << 3) | LENGTH)) {
      if (cursor.lengthEnd(end) !== end) throw UNUSUAL;
      this.readValue(cursor, index, end);
    } else if (tag === 0 && cursor.position === end) this.setOther(index, null);
    else throw UNUSUAL;
  }

  /** Takes out what a bridge put beside the attributes, by name, as texts; `undefined` where there is nothing. */
  takeBridge(from: Buffer): ReadonlyMap<string, string> | undefined {
    if (!this.mayHaveBridge) return undefined;
    const bridge = new Map<string, string>();
    let kept = 0;
    for (let index = 0; index < this.count; index++) {
      const key = this.key(from, index);
      if (key.startsWith(BRIDGE_PREFIX)) bridge.set(key, this.text(from, index));
      else this.move(index, kept++);
    }
    this.count = kept;
    return bridge.size === 0 ? undefined : bridge;
  }

  key(from: Buffer, index: number): string {
    return from.toString('utf8', this.keyStart[index], this.keyEnd[index]);
  }

  /** `undefined` for what is no text. */
  textAt(from: Buffer, index: number): string | undefined {
    return this.valueKind[index] === STRING ? this.text(from, index) : undefined;
  }

  /** A text as it is, any other value as JSON. */
  private text(from: Buffer, index: number): string {
    const start = this.valueStart[index] as number;
    const end = this.valueEnd[index] as number;
    switch (this.valueKind[index]) {
      case STRING:
        return from.toString('utf8', start, end);
      case BOOL:
        return valueJson(from[start] !== 0);
      case INT:
        return valueJson(integerAt(from, start, end));
      default:
        return valueJson(this.others.get(index) ?? null);
    }
  }

  private move(from: number, to: number): void {
    if (from === to) return;
    for (const cells of [this.keyStart, this.keyEnd, this.valueKind, this.valueStart, this.valueEnd]) {
      cells[to] = cells[from] as number;
    }
    if (this.valueKind[to] === OTHER) this.others.set(to, this.others.get(from) ?? null);
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
      cursor.position = start;
      this.setOther(index, readAnyValue(cursor, end, 1));
    }
    if (cursor.position !== end) throw UNUSUAL;
  }

  private setOther(index: number, value: AnyValue): void {
    this.valueKind[index] = OTHER;
    this.others.set(index, value);
  }

  private grow(): void {
    this.keyStart = grown(this.keyStart);
    this.keyEnd = grown(this.keyEnd);
    this.valueKind = grown(this.valueKind);
    this.valueStart = grown(this.valueStart);
    this.valueEnd = grown(this.valueEnd);
  }
}

/** What `BRIDGE_PREFIX` begins with. */
const LETTER_R = 0x72;
const LETTER_U = 0x75;

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
  /** Events as the record log keeps them; mostly none. */
  events: JsonObject[] = NO_EVENTS;

  /** Reads the span that ends at `end`. @throws UNUSUAL, OtlpDecodeError */
  read(cursor: WireCursor, end: number): void {
    this.traceId = this.spanId = this.startTime = this.endTime = this.parentSpanId = -1;
    this.nameStart = this.nameEnd = this.messageStart = this.messageEnd = 0;
    this.statusCode = 0;
    this.links = NO_LINKS;
    this.hasOddLink = false;
    this.events = NO_EVENTS;
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
          this.readEvent(cursor, cursor.lengthEnd(end));
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

  /** Whether an id in it has another length than such ids have: there are receivers that refuse all of a request for one. */
  get hasOddId(): boolean {
    return this.hasOddLink || this.traceId === ODD_ID || this.spanId === ODD_ID || this.parentSpanId === ODD_ID;
  }

  private readLink(cursor: WireCursor, end: number): void {
    let traceId = -1;
    let spanId = -1;
    let entries: KeyValue[] | undefined;
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
          entries ??= [];
          entries.push(readKeyValue(cursor, cursor.lengthEnd(end), 1));
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
    this.links.push({ traceId, spanId, attributes: entries === undefined ? '{}' : valueJson({ entries }) });
  }

  private readEvent(cursor: WireCursor, end: number): void {
    let name = '';
    let time = 0n;
    const entries = [];
    while (cursor.position < end) {
      const tag = cursor.varint32(end);
      switch (tag) {
        case (1 << 3) | FIXED64: {
          const start = cursor.position;
          cursor.skip(FIXED64, end);
          time = cursor.bytes.readBigUInt64LE(start);
          break;
        }
        case (2 << 3) | LENGTH:
          name = cursor.text(end);
          break;
        case (3 << 3) | LENGTH:
          entries.push(readKeyValue(cursor, cursor.lengthEnd(end), 1));
          break;
        case (4 << 3) | VARINT:
          cursor.skip(VARINT, end);
          break;
        default:
          throw UNUSUAL;
      }
    }
    if (this.events === NO_EVENTS) this.events = [];
    const attributes = JSON.parse(valueJson({ entries })) as JsonObject;
    this.events.push({ name, time_unix_nano: String(time), attributes });
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

/** A link of a span: where its ids stand, and its attributes as JSON. */
interface LinkSlice {
  readonly traceId: number;
  readonly spanId: number;
  readonly attributes: string;
}

const NO_LINKS: LinkSlice[] = [];
const NO_EVENTS: JsonObject[] = [];

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
  /** A text; empty where `otherBody` has it. */
  bodyStart = 0;
  bodyEnd = 0;
  /** A body that is no text, as JSON; empty for none. */
  otherBody = '';
  eventNameStart = 0;
  eventNameEnd = 0;
  readonly attributes = new AttributeSlice();

  /** Whether an id in it has another length than such ids have. */
  get hasOddId(): boolean {
    return this.traceId === ODD_ID || this.spanId === ODD_ID;
  }

  /** Reads the log record that ends at `end`. @throws UNUSUAL, OtlpDecodeError */
  read(cursor: WireCursor, end: number): void {
    let observed = -1;
    this.traceId = this.spanId = this.time = -1;
    this.severityNumber = this.severityStart = this.severityEnd = this.bodyStart = this.bodyEnd = 0;
    this.eventNameStart = this.eventNameEnd = 0;
    this.otherBody = '';
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
    const start = cursor.position;
    this.bodyStart = this.bodyEnd = end;
    this.otherBody = '';
    if (start === end) return;
    if (cursor.varint32(end) === ((STRING_VALUE << 3) | LENGTH)) {
      if (cursor.lengthEnd(end) !== end) throw UNUSUAL;
      this.bodyStart = cursor.position;
      cursor.position = end;
      return;
    }
    cursor.position = start;
    this.otherBody = valueJson(readAnyValue(cursor, end, 1));
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
