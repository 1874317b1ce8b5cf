import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import type { MappingSwitches } from '../../config/mapping-options.js';
import { type Resource, UNKNOWN_RESOURCE } from '../../record/attributes.js';
import { formatRecordLine, tryParseRecordLine } from '../../record/record-line.js';
import { learnNamesAlone, learnStatement, type Redactor } from '../../redaction/redactor.js';
import type { MissingParents, NodeIndex, OpenStart, SpanTree } from '../mapping/span-tree.js';
import type { LoggedLines } from '../run-mapper.js';
import { encodeAttribute, encodeAttributes, varintSize, type WireWriter } from '../wire/wire-writer.js';
import {
  type AttributeMapping,
  type EventMappings,
  flattenAttributes,
  int64Value,
  isSpecialName,
  roleIndexOf,
  TaughtNames,
} from './event-mappings.js';
import { type LineBlock, LineBlocks, LineReader } from './line-reader.js';
import {
  ATTRIBUTE_CELLS,
  FALSE,
  INTEGER,
  LineScanner,
  NULL,
  OTHER,
  OTHER_TEXT,
  PLAIN_TEXT,
  TRUE,
} from './line-scanner.js';

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

/** What a run remembers of its records. */
export interface RunMemory {
  readonly redactor: Redactor;
  readonly tree: SpanTree<LineStart>;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
}

/** Takes what lines bring. */
export interface LineHost {
  /** Time has passed in the run. */
  advance(seconds: number, nanos: number): void;
  /** A span has ended and waits for its events. @param block its line is the last one there */
  hold(anchorOffset: number, resource: Resource, endSeconds: number, endNanos: number, block: LineBlock): void;
  /** A log record has come. @throws SyntaxError when its line turns out to be damaged */
  log(anchorOffset: number, resource: Resource, line: LineReader): void;
}

const NO_BYTES = Buffer.alloc(0);
/** As many spans as begin in half a megabyte. */
const MAX_SPARE_STARTS = 512;

/** Takes a run's records as the bytes of their lines. */
export class LineIntake {
  private readonly line: LineReader;
  private readonly blocks = new LineBlocks();
  private readonly scanner: LineScanner;
  private readonly taughtNames: TaughtNames;
  /** Starts that came with this push. */
  private starts: LineStart[] = [];
  /** To be used again: most spans end in the push that they begin in. */
  private readonly spareStarts: LineStart[] = [];

  constructor(
    private readonly memory: RunMemory,
    private readonly host: LineHost,
    mappings: EventMappings,
  ) {
    this.line = new LineReader(mappings);
    this.scanner = new LineScanner(mappings);
    this.taughtNames = new TaughtNames(mappings.texts);
  }

  /** @returns how many lines were no records, and were passed over. */
  push({ lines, offset, resource }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    let damagedCount = 0;
    for (let start = 0; start < bytes.length; ) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak === -1 ? bytes.length : lineBreak;
      // The scanner relies on the line break to stop at; the last line of damaged bytes may lack it.
      const isPoint = lineBreak !== -1 && this.pointAt(bytes, start, end, false);
      const isRecord = isPoint || this.pointAtRewritten(bytes, start, end);
      if (!isRecord || !this.take(offset + start, resource)) damagedCount++;
      start = end + 1;
    }
    this.keepOpenStarts();
    // Open runs are many, and each would keep the latest megabyte that it was given.
    this.scanner.use(NO_BYTES);
    this.line.forget();
    return damagedCount;
  }

  /** The start of a span that is still open. */
  read(start: LineStart): LineReader {
    const { line } = this;
    if (!this.pointAt(start.bytes, start.start, start.end, true))
      throw new Error('a line that was read cannot be read again');
    return line;
  }

  /** A line in this block that the host was given to hold is not wanted any more. */
  letGo(block: LineBlock): void {
    this.blocks.letGo(block);
  }

  /** Those of spans that ended meanwhile are nobody's any more. */
  private keepOpenStarts(): void {
    for (const start of this.starts) {
      if (start.isOpen) start.keep();
      else if (this.spareStarts.length < MAX_SPARE_STARTS) this.spareStarts.push(start);
    }
    for (const start of this.spareStarts) start.forget();
    this.starts = [];
  }

  private pointAt(bytes: Buffer, start: number, end: number, isChecked: boolean): boolean {
    this.scanner.use(bytes);
    if (!this.scanner.scan(start, end, isChecked)) return false;
    this.line.pointAtScanned(bytes, start, end, this.scanner);
    return true;
  }

  /** Of a line in another layout than the engine's: points at the same record in that one. @returns false for no record */
  private pointAtRewritten(bytes: Buffer, start: number, end: number): boolean {
    const record = tryParseRecordLine(bytes.toString('utf8', start, end));
    if (record === undefined) return false;
    const { line: _line, unknownFields: _unknown, ...known } = record;
    const severityNumber = clamp(record.severityNumber);
    const rewritten =
      known.recordType === 'SpanEnd' && known.status !== null
        ? { ...known, severityNumber, status: { ...known.status, code: clamp(known.status.code) } }
        : { ...known, severityNumber };
    const own = Buffer.from(`${formatRecordLine(rewritten)}\n`);
    return this.pointAt(own, 0, own.length - 1, true);
  }

  /** Takes the record that `line` points at. @returns false where it turns out to be damaged */
  private take(anchorOffset: number, resource: Resource): boolean {
    const { line, host, memory } = this;
    this.learnNames();
    try {
      if (line.isEnd || line.isLog) this.learnStatement();
    } catch (error) {
      // A span's damaged line is passed over when it is sent.
      if (!(error instanceof SyntaxError)) throw error;
    }
    const { endSeconds, endNanos } = line;
    host.advance(endSeconds, endNanos);
    if (line.isLog) return this.takeLog(anchorOffset, resource);
    const { tree, missingParents } = memory;
    if (!line.isEnd) {
      const start = this.spareStarts.pop() ?? new LineStart();
      start.pointAt(line, resource);
      (tree.begin(line, start) ? this.starts : this.spareStarts).push(start);
      missingParents.arrived(line.spanHigh, line.spanLow);
      memory.nodes.seeSpan(line);
      return true;
    }
    if (!tree.end(line)) return true;
    memory.nodes.seeSpan(line);
    missingParents.arrived(line.spanHigh, line.spanLow);
    missingParents.seeChild(line, resource);
    const block = this.blocks.keep(line.bytes, line.start, line.end, this.scanner);
    host.hold(anchorOffset, resource, endSeconds, endNanos, block);
    return true;
  }

  private takeLog(anchorOffset: number, resource: Resource): boolean {
    try {
      this.memory.nodes.seeLog(this.line);
      this.host.log(anchorOffset, resource, this.line);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** As `learnNamesAlone` does, without looking for attributes that are not there. */
  private learnNames(): void {
    const { line } = this;
    if (!line.hasAttributeCells) {
      learnNamesAlone(line, this.memory.redactor);
      return;
    }
    const { nameCells, nameCount } = this.scanner;
    for (let index = 0; index < nameCount; index++) this.learnName(nameCells[index] as number);
    if (!line.isLog || line.event.isNaming) return;
    const cell = line.find(UNIQUE_ID);
    if (cell !== 0) this.learnName(cell);
  }

  private learnName(cell: number): void {
    const { line } = this;
    const { redactor } = this.memory;
    const text = line.textAt(cell);
    if (text === undefined) return;
    if (line.mappingAt(cell).isAdapter) redactor.useAdapter(text);
    else if (line.kindAt(cell) !== PLAIN_TEXT) redactor.learn(text);
    else if (this.taughtNames.isNew()) redactor.learnOwn(text);
  }

  private learnStatement(): void {
    const { line } = this;
    if (line.hasAttributeCells && line.find(SQL) === 0) return;
    learnStatement(line, this.memory.redactor);
  }
}

/** The line of a span's start, while the span is open. Most spans end soon, and nobody asks for their start. */
export class LineStart implements OpenStart {
  isOpen = false;
  bytes: Buffer = NO_BYTES;
  start = 0;
  end = 0;
  resource: Resource = UNKNOWN_RESOURCE;

  /** Points at the line that a reader points at, in bytes that are only lent. */
  pointAt({ bytes, start, end }: LineReader, resource: Resource): void {
    this.isOpen = true;
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.resource = resource;
  }

  /** Copies the line, and its line break, out of the lent bytes, at the end of the push in which it came. */
  keep(): void {
    this.bytes = Buffer.from(this.bytes.subarray(this.start, this.end + 1));
    this.end -= this.start;
    this.start = 0;
  }

  /** Lets go of the bytes. */
  forget(): void {
    this.bytes = NO_BYTES;
    this.start = this.end = 0;
    this.resource = UNKNOWN_RESOURCE;
  }
}

function clamp(value: number): number {
  return Math.min(Math.max(value, -MAX_INT32), MAX_INT32);
}

const LINE_BREAK = 0x0a;
const MAX_INT32 = 2 ** 31 - 1;
const SQL = roleIndexOf('sql');
const UNIQUE_ID = roleIndexOf('unique_id');
