/** Wire types of protobuf. */
export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH = 2;
export const FIXED32 = 5;

/** OTLP's messages, as far as other messages are inside them: field number → message. */
const NESTED = {
  traces: { 1: 'resourceSpans' },
  resourceSpans: { 1: 'resource', 2: 'scopeSpans' },
  scopeSpans: { 1: 'scope', 2: 'span' },
  span: { 9: 'keyValue', 11: 'event', 13: 'link', 15: 'status' },
  event: { 3: 'keyValue' },
  link: { 4: 'keyValue' },
  status: {},
  logs: { 1: 'resourceLogs' },
  resourceLogs: { 1: 'resource', 2: 'scopeLogs' },
  scopeLogs: { 1: 'scope', 2: 'logRecord' },
  logRecord: { 5: 'anyValue', 6: 'keyValue' },
  resource: { 1: 'keyValue' },
  scope: { 3: 'keyValue' },
  keyValue: { 2: 'anyValue' },
  anyValue: { 5: 'arrayValue', 6: 'kvList' },
  arrayValue: { 1: 'anyValue' },
  kvList: { 1: 'keyValue' },
} as const satisfies Record<string, Record<number, string>>;

/** A message of OTLP. */
export type MessageName = keyof typeof NESTED;

/** A field as it is on the wire; to be changed. */
export interface WireField {
  number: number;
  wire: number;
  /** What stands behind the tag (and the length), unless there are `fields`. */
  bytes: Buffer;
  /** Of a field that is a message. */
  fields?: WireField[];
  readonly message?: MessageName;
  /** Written in place of tag or length when they are to be odd. */
  tagBytes?: Buffer;
  lengthBytes?: Buffer;
}

/** A body's fields, those of nested messages included; a range that cannot be read ends the list. */
export function readFields(body: Buffer, message: MessageName): WireField[] {
  const fields: WireField[] = [];
  const nested: Readonly<Record<number, MessageName | undefined>> = NESTED[message];
  for (let at = 0; at < body.length; ) {
    const tag = readVarint(body, at);
    if (tag === undefined) break;
    const [number, wire] = [Math.floor(tag.value / 8), tag.value % 8];
    const size = sizeOf(body, tag.end, wire);
    if (size === undefined || size.end > body.length) break;
    const bytes = body.subarray(size.start, size.end);
    const inner = wire === LENGTH ? nested[number] : undefined;
    if (inner === undefined) fields.push({ number, wire, bytes });
    else fields.push({ number, wire, bytes, message: inner, fields: readFields(bytes, inner) });
    at = size.end;
  }
  return fields;
}

/** The bytes of fields. */
export function writeFields(fields: readonly WireField[]): Buffer {
  return Buffer.concat(fields.flatMap(writeField));
}

/** Every field, each before those inside it. */
export function allFields(fields: readonly WireField[]): WireField[] {
  return fields.flatMap((field) => [field, ...allFields(field.fields ?? [])]);
}

/** A protobuf varint. @param padding bytes more than it needs */
export function varint(value: bigint | number, padding = 0): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  for (let more = 0; more < padding; more++) {
    bytes.push((bytes.pop() ?? 0) | 128, 0);
  }
  return Buffer.from(bytes);
}

function writeField(field: WireField): Buffer[] {
  const tag = field.tagBytes ?? varint(field.number * 8 + field.wire);
  const content = field.fields === undefined ? field.bytes : writeFields(field.fields);
  return field.wire === LENGTH ? [tag, field.lengthBytes ?? varint(content.length), content] : [tag, content];
}

function sizeOf(body: Buffer, at: number, wire: number): { start: number; end: number } | undefined {
  if (wire === FIXED64) return { start: at, end: at + 8 };
  if (wire === FIXED32) return { start: at, end: at + 4 };
  const read = wire === VARINT || wire === LENGTH ? readVarint(body, at) : undefined;
  if (read === undefined) return undefined;
  return wire === VARINT ? { start: at, end: read.end } : { start: read.end, end: read.end + read.value };
}

function readVarint(body: Buffer, at: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let index = 0; index < 10; index++) {
    const byte = body[at + index];
    if (byte === undefined) return undefined;
    value += (byte & 127) * 128 ** index;
    if (byte < 128) return { value, end: at + index + 1 };
  }
  return undefined;
}
