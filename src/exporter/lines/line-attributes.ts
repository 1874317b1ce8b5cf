import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import { flattenAttributes, int64Value } from '../mapping/flatten-attributes.js';
import type { MappingSwitches } from '../mapping/mapping-switches.js';
import type { Redactor } from '../redaction/redactor.js';
import { encodeAttribute, encodeAttributes } from '../wire/encode-attributes.js';
import type { WireWriter } from '../wire/wire-writer.js';
import { type AttributeMapping, isSpecialName, roleIndexOf } from './event-mappings.js';
import type { LineReader } from './line-reader.js';
import { ATTRIBUTE_CELLS, FALSE, INTEGER, NULL, OTHER, OTHER_TEXT, PLAIN_TEXT, TRUE } from './line-scanner.js';
import { writeIntegerAttribute, writeTextAttribute } from './write-attribute.js';

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
const ZERO = 0x30;
/** Longest integer that is surely exact. */
const MAX_DIGITS = 15;
