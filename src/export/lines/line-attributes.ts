import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import type { Redactor } from '../../redaction/redactor.js';
import { flattenAttributes, int64Value } from '../mapping/flatten-attributes.js';
import type { MappingSwitches } from '../mapping/mapping-options.js';
import { encodeAttribute, encodeAttributes, varintSize, type WireWriter } from '../wire/wire-writer.js';
import { type AttributeMapping, isSpecialName, roleIndexOf } from './event-mappings.js';
import type { LineReader } from './line-reader.js';
import { ATTRIBUTE_CELLS, FALSE, INTEGER, NULL, OTHER, OTHER_TEXT, PLAIN_TEXT, TRUE } from './line-scanner.js';

/** Writes the attributes of lines, redacted; attributes that need no look are copied. */
export class LineAttributes {
  private readonly isRedacted: boolean;

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
  ) {
    this.isRedacted = redactor.level !== 'off';
  }

  /**
   * Writes a line's attributes but its statement.
   * @param tag of the field that repeats attributes. @param mayMeet attributes are added that the line may have, too
   * @returns what is to be written behind them: nothing yet. Where two attributes might have one name nothing is written,
   * and all are in it.
   * @throws SyntaxError when the line turns out to be damaged; what was written is to be passed over.
   */
  write(out: WireWriter, tag: number, line: LineReader, mayMeet: boolean): OtelAttributes {
    const begin = out.length;
    if (!mayMeet && line.hasAttributeCells) {
      const { typeAttribute } = line.event;
      out.tag(tag);
      out.copy(typeAttribute, 0, typeAttribute.length);
      if (this.copy(out, tag, line)) return {};
      out.length = begin;
    }
    const together: OtelAttributes = { event_type: line.eventType };
    const isLifted = this.switches['lifted-attributes'];
    flattenAttributes(line.attributes.value, line.eventType, together, this.redactor, isLifted);
    return together;
  }

  /** @returns false when two attributes would have one name. */
  private copy(out: WireWriter, tag: number, line: LineReader): boolean {
    let nested: Set<string> | undefined;
    let cell = line.attributesCell;
    for (let left = line.attributeCount; left > 0; left--, cell += ATTRIBUTE_CELLS) {
      const mapping = line.mappingAt(cell);
      if (mapping.role === SQL) continue;
      const start = line.valueStart(cell);
      const end = line.valueEnd(cell);
      switch (line.kindAt(cell)) {
        case PLAIN_TEXT:
          if (mapping.isInt64) writeInt64(out, tag, mapping, line.bytes, start, end);
          else if (!this.isRedacted || mapping.policy === 'keep')
            writeTextAttribute(out, tag, mapping, line.bytes, start, end);
          else this.writeRedacted(out, tag, mapping, line, cell);
          break;
        case INTEGER:
          if (!this.isRedacted || mapping.policy !== 'deny')
            writeIntegerAttribute(out, tag, mapping, line.bytes, start, end);
          break;
        case TRUE:
          encodeAttribute(out, tag, mapping.name, true);
          break;
        case FALSE:
          encodeAttribute(out, tag, mapping.name, false);
          break;
        case OTHER_TEXT:
          this.writeRedacted(out, tag, mapping, line, cell);
          break;
        case OTHER:
          nested ??= new Set();
          if (!this.writeOther(out, tag, line, cell, nested)) return false;
          break;
        case NULL:
          break;
      }
    }
    return true;
  }

  private writeRedacted(out: WireWriter, tag: number, mapping: AttributeMapping, line: LineReader, cell: number): void {
    const text = line.textAt(cell);
    if (text === undefined) throw new SyntaxError(`${mapping.name} is no text`);
    const value = mapping.isInt64 ? int64Value(text) : this.redactor.byPolicy(mapping.policy, text, true);
    encodeAttribute(out, tag, mapping.name, value);
  }

  /** @param nested names that other nested values were given, so far. */
  private writeOther(out: WireWriter, tag: number, line: LineReader, cell: number, nested: Set<string>): boolean {
    const { name } = line.mappingAt(cell);
    const attributes: OtelAttributes = {};
    const isLifted = this.switches['lifted-attributes'];
    flattenAttributes({ [name]: line.valueAt(cell) }, line.eventType, attributes, this.redactor, isLifted);
    for (const added in attributes) {
      if (nested.has(added) || isSpecialName(added) || added === 'sql') return false;
      const other = added === name ? undefined : line.event.knownAttribute(added);
      if (other !== undefined && line.has(other)) return false;
      nested.add(added);
    }
    encodeAttributes(out, tag, attributes);
    return true;
  }
}

function writeInt64(
  out: WireWriter,
  tag: number,
  mapping: AttributeMapping,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  let at = start;
  while (at < end && ((bytes[at] as number) - ZERO) >>> 0 < 10) at++;
  if (at === end && end > start && end - start <= MAX_DIGITS)
    writeIntegerAttribute(out, tag, mapping, bytes, start, end);
  else encodeAttribute(out, tag, mapping.name, int64Value(bytes.toString('latin1', start, end)));
}

const SQL = roleIndexOf('sql');
/** Longest integer that is surely exact. */
const MAX_DIGITS = 15;

const STRING_VALUE = 0x0a;
const INT_VALUE = 0x18;
const ZERO = 0x30;

/** Writes ASCII bytes as a text attribute: all lengths are known beforehand, so nothing is moved. */
export function writeTextAttribute(
  out: WireWriter,
  tag: number,
  mapping: AttributeMapping,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  const length = end - start;
  const { keyBytes } = mapping;
  // All three lengths take one byte for nearly every attribute: then it is written in one go.
  const byteCount = keyBytes.length + 3 + length;
  if (byteCount < 0x80) {
    out.reserve(byteCount + 2);
    const to = out.bytes;
    let at = out.length;
    to[at++] = tag;
    to[at++] = byteCount;
    for (let index = 0; index < keyBytes.length; index++) to[at++] = keyBytes[index] as number;
    to[at++] = length + 2;
    to[at++] = STRING_VALUE;
    to[at++] = length;
    for (let index = start; index < end; index++) to[at++] = bytes[index] as number;
    out.length = at;
    return;
  }
  writeHead(out, tag, mapping, 1 + varintSize(length) + length);
  out.bytes[out.length++] = STRING_VALUE;
  out.varint(length);
  out.copy(bytes, start, end);
}

/** Writes at most 15 digits as an integer attribute. */
export function writeIntegerAttribute(
  out: WireWriter,
  tag: number,
  mapping: AttributeMapping,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (bytes[at] as number) - ZERO;
  let byteCount = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) byteCount++;
  writeHead(out, tag, mapping, 1 + byteCount);
  out.bytes[out.length++] = INT_VALUE;
  for (; value > 0x7f; value = Math.floor(value / 0x80)) out.bytes[out.length++] = (value % 0x80) | 0x80;
  out.bytes[out.length++] = value;
}

/** A KeyValue up to its value, whose length is known; with room for a short value. */
function writeHead(out: WireWriter, tag: number, mapping: AttributeMapping, valueBytes: number): void {
  const { keyBytes } = mapping;
  out.tag(tag);
  out.varint(keyBytes.length + varintSize(valueBytes) + valueBytes);
  out.copy(keyBytes, 0, keyBytes.length);
  out.varint(valueBytes);
  out.reserve(SHORT_VALUE_BYTES);
}

const SHORT_VALUE_BYTES = 16;
