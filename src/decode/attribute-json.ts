import type { AnyValue, KeyValue, KeyValueList } from '../otlp/export-request.js';
import { Attributes } from '../record/attributes.js';
import type { AttributeField, AttributeSchema } from './attribute-schema.js';
import { modernEnumName } from './spelling.js';

/** A JSON text nested deeper than this stays a string: whoever writes it again must not run out of stack. */
const MAX_NESTING = 100;

/** One attribute: its name and its value as JSON text. */
export interface AttributePart {
  readonly name: string;
  readonly json: string;
}

/** Attribute names come again and again; the quoted forms of this many are kept, of names up to so many characters. */
const MAX_QUOTED_NAMES = 4096;
const MAX_QUOTED_LENGTH = 256;

/** Writes OTLP attributes as the engine's JSON. */
export class AttributeWriter {
  private readonly quotedNames = new Map<string, string>();

  constructor(private readonly schema: AttributeSchema) {}

  /**
   * A span's or log record's attributes, in key order: nested JSON texts as what they are, numbers as the schema spells
   * them. Of a key that comes twice the last value counts.
   */
  parts(attributes: readonly KeyValue[], eventType: string): readonly AttributePart[] {
    return inKeyOrder(attributes).map(({ key, value }) => ({
      name: key,
      json: fieldJson(value, this.schema.field(eventType, key)),
    }));
  }

  /** The attributes that parts make up. Kept as text: most are never looked at again. */
  join(parts: readonly AttributePart[]): Attributes {
    let json = '';
    for (const { name, json: value } of parts) json += `${json === '' ? '{' : ','}${this.quoted(name)}:${value}`;
    return json === '' ? Attributes.EMPTY : Attributes.fromJson(`${json}}`);
  }

  private quoted(name: string): string {
    let text = this.quotedNames.get(name);
    if (text === undefined) {
      text = JSON.stringify(name);
      const isKept = this.quotedNames.size < MAX_QUOTED_NAMES && name.length <= MAX_QUOTED_LENGTH;
      if (isKept) this.quotedNames.set(name, text);
    }
    return text;
  }
}

/** The engine sends its attributes in key order, so sorting is seldom needed. */
function inKeyOrder(attributes: readonly KeyValue[]): readonly KeyValue[] {
  let previous = '';
  let isSorted = true;
  for (const { key } of attributes) {
    if (key <= previous && previous !== '') isSorted = false;
    previous = key;
  }
  if (isSorted) return attributes;
  const byKey = new Map(attributes.map((attribute) => [attribute.key, attribute]));
  return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

function fieldJson(value: AnyValue, field: AttributeField | undefined): string {
  if (typeof value === 'string') return textJson(value, field);
  if (typeof value === 'bigint') return integerJson(value, field);
  return valueJson(value);
}

function textJson(value: string, field: AttributeField | undefined): string {
  switch (field?.kind) {
    case 'nested':
    case undefined:
      return nestedJson(value) ?? JSON.stringify(value);
    case 'enum':
      return JSON.stringify(modernEnumName(value, field));
    case 'text':
    case 'int64':
    case 'int32':
    case 'bool':
    case 'double':
    case 'enumNumber':
      return JSON.stringify(value);
  }
}

function integerJson(value: bigint, field: AttributeField | undefined): string {
  if (field?.kind === 'int64') return `"${value}"`;
  const name = field?.kind === 'enum' ? field.nameByNumber.get(Number(value)) : undefined;
  return name === undefined ? String(value) : JSON.stringify(name);
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
