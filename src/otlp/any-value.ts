import type { AnyValue, KeyValue, KeyValueList } from './export-request.js';
import { FIXED32, FIXED64, LENGTH, VARINT } from './wire-type.js';

/** The bytes are not framed as any encoder frames them; protobufjs reads them (and says what is wrong, if anything) and frames them anew. */
export class UnusualShape extends Error {
  override readonly name = 'UnusualShape';
}

/** Thrown again and again, so that it costs no stack trace. */
export const UNUSUAL = new UnusualShape('framed as no encoder does it');

/** 64 bits in groups of seven. */
const MAX_VARINT_BYTES = 10;

/** Walks over protobuf's wire format. What it meets beyond the usual framing ends it. */
export class WireCursor {
  position = 0;

  constructor(readonly bytes: Buffer) {}

  /** A field's number and wire type. Number 0 is invalid: the reader refuses the whole body. */
  tag(end: number): number {
    const tag = this.varint32(end);
    if (tag >>> 3 === 0) throw UNUSUAL;
    return tag;
  }

  /** A varint below 2^32: tags and lengths. */
  varint32(end: number): number {
    const { bytes } = this;
    let byte = bytes[this.position++] as number;
    if (byte < 0x80 && this.position <= end) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; shift < 28; shift += 7) {
      byte = bytes[this.position++] as number;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80 && this.position <= end) return value;
    }
    throw UNUSUAL;
  }

  /** The end of a length-delimited field that begins here. */
  lengthEnd(end: number): number {
    const fieldEnd = this.varint32(end) + this.position;
    if (fieldEnd > end) throw UNUSUAL;
    return fieldEnd;
  }

  /** Passes over a field's value. */
  skip(wireType: number, end: number): void {
    switch (wireType) {
      case VARINT:
        this.skipVarint(end);
        break;
      case FIXED64:
        this.position += 8;
        break;
      case LENGTH:
        this.position = this.lengthEnd(end);
        break;
      case FIXED32:
        this.position += 4;
        break;
      default:
        throw UNUSUAL;
    }
    if (this.position > end) throw UNUSUAL;
  }

  private skipVarint(end: number): void {
    const last = Math.min(end, this.position + MAX_VARINT_BYTES);
    while ((this.bytes[this.position++] as number) >= 0x80) if (this.position >= last) throw UNUSUAL;
  }
}

/** A protobuf field of wire type 2: tag, length, content. */
export function lengthDelimited(number: number, content: Uint8Array): Buffer {
  const head = [(number << 3) | LENGTH];
  let length = content.length;
  for (; length >= 0x80; length >>>= 7) head.push((length & 0x7f) | 0x80);
  head.push(length);
  return Buffer.concat([Buffer.from(head), content]);
}

/** A request of one span or log record (or none) of this resource and scope. */
export function wrapped(resource: Buffer, scope: Buffer, item: Buffer | undefined): Buffer {
  const group = Buffer.concat([
    lengthDelimited(1, scope),
    item === undefined ? Buffer.alloc(0) : lengthDelimited(2, item),
  ]);
  return lengthDelimited(1, Buffer.concat([lengthDelimited(1, resource), lengthDelimited(2, group)]));
}

/** A JSON text nested deeper than this stays a string, so that writing it again does not exhaust the stack. */
const MAX_NESTING = 100;

/** One attribute: its name and its value as JSON text. */
export interface AttributePart {
  readonly name: string;
  readonly json: string;
}

/** Of a key that comes twice the last value counts. */
export function inKeyOrder(attributes: readonly KeyValue[]): readonly KeyValue[] {
  const byKey = new Map(attributes.map((attribute) => [attribute.key, attribute]));
  return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A value as it is, lists and maps with all that is in them. */
export function valueJson(value: AnyValue): string {
  if (typeof value === 'number') return doubleJson(value);
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'));
  if (isList(value)) return `[${value.map(valueJson).join(',')}]`;
  if (isMap(value)) return mapJson(value);
  return JSON.stringify(value);
}

function isList(value: AnyValue): value is readonly AnyValue[] {
  return Array.isArray(value);
}

function isMap(value: AnyValue): value is KeyValueList {
  return typeof value === 'object' && value !== null && 'entries' in value;
}

function mapJson(map: KeyValueList): string {
  return `{${inKeyOrder(map.entries)
    .map(({ key, value }) => `${JSON.stringify(key)}:${valueJson(value)}`)
    .join(',')}}`;
}

/** A double as the engine spells it: with a decimal point also where it is whole; JSON has no word for the others. */
function doubleJson(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const text = JSON.stringify(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** The text itself where it is a JSON object or list on one line; `undefined` where it is not. */
export function nestedJson(text: string): string | undefined {
  if (!text.startsWith('{') && !text.startsWith('[')) return undefined;
  if (nestingOf(text) > MAX_NESTING) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return /[\n\r]/.test(text) ? JSON.stringify(value) : text;
  } catch {
    return undefined;
  }
}

/** An upper bound of how deeply a JSON text is nested. */
function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return deepest;
}
