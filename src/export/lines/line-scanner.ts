import { type AttributeMapping, type EventMapping, type EventMappings, Literal } from './event-mappings.js';

/**
 * A line as numbers: where its parts stand in the line, counted from its first byte, and its ids and times. One array of
 * these cells for each line, in this order; then two cells for each link and three for each attribute.
 */
export const CELL = {
  /** The two halves of an id, as signed 32-bit integers; both 0 for none. */
  spanHigh: 0,
  spanLow: 1,
  parentHigh: 2,
  parentLow: 3,
  /** Of a log record, its time. Two cells for each time, see `secondsAt`. */
  start: 4,
  end: 6,
  /** Of a log record, its body. Two cells for each text, see `isEscaped`. */
  name: 8,
  /** 0 for none, and for a code that OpenTelemetry does not have. */
  statusCode: 10,
  /** Of the status; both 0 where there is none. */
  message: 11,
  /** Index of its `EventMapping`. */
  event: 13,
  eventType: 14,
  /** Where the JSON object of the attributes begins; it ends one byte before the line does. */
  attributes: 16,
  /** -1 for links that are not laid out as the engine's: then two cells say where the list begins and ends. */
  linkCount: 17,
  /** -1 for attributes that the table of mappings does not know in their whole: then there are no cells of them. */
  attributeCount: 18,
  /** One bit for each role that an attribute of the line has. */
  roles: 19,
  /** Of each link: where its trace id and its span id stand, in hexadecimal. */
  links: 20,
  /** Of a log record, in the place of what only spans have. */
  severityNumber: 10,
  severityText: 11,
} as const;

/** Cells of an attribute: index of its `AttributeMapping` and kind of its value, begin and end of the value. */
export const ATTRIBUTE_CELLS = 3;
export const LINK_CELLS = 2;

/** Links and attributes that have cells; a line may have more. */
const MAX_LINKS = 16;
export const MAX_ATTRIBUTES = 128;
/** Cells of a line at most. */
export const MAX_CELLS = CELL.links + MAX_LINKS * LINK_CELLS + MAX_ATTRIBUTES * ATTRIBUTE_CELLS;

/** Kinds of values. A plain text is ASCII without escapes; its begin and end are those of its characters. */
export const PLAIN_TEXT = 0;
/** A text that has to be parsed, with its quotes. */
export const OTHER_TEXT = 1;
/** A whole number of at most 15 digits. */
export const INTEGER = 2;
export const TRUE = 3;
export const FALSE = 4;
export const NULL = 5;
/** Any other number, a list, an object. */
export const OTHER = 6;

/** Seconds of a time. They take up to 34 bits, the upper two of which stand above the nanoseconds. */
export function secondsAt(cells: Int32Array, cell: number): number {
  return ((cells[cell] as number) >>> 0) + ((cells[cell + 1] as number) >>> NANOS_BITS) * TWO_TO_32;
}

/** The nanoseconds of a time beside its seconds. */
export function nanosAt(cells: Int32Array, cell: number): number {
  return (cells[cell + 1] as number) & NANOS_MASK;
}

const NANOS_BITS = 30;
const NANOS_MASK = 2 ** NANOS_BITS - 1;
const TWO_TO_32 = 2 ** 32;

/** Whether a text has escapes, or other characters than ASCII's: then the cell of its end is inverted. */
export function isEscaped(end: number): boolean {
  return end < 0;
}

/** What kind of record a line is. */
export const SPAN_START = 0;
export const SPAN_END = 1;
export const LOG_RECORD = 2;

/**
 * Reads lines that are laid out as the engine lays out its own, from their bytes to cells: nothing is made of them but
 * numbers. A line in another layout is not read; written anew by `formatRecordLine` it is. Of attributes that are neither
 * plain texts nor plain numbers only the end is found: whether they are JSON shows when they are parsed, except of the
 * texts that are read at once.
 */
export class LineScanner {
  /** Of the line that was read last; see `CELL`. */
  readonly cells = new Int32Array(MAX_CELLS);
  cellCount = 0;
  /** `SPAN_START`, `SPAN_END` or `LOG_RECORD`. */
  kind = SPAN_START;
  event: EventMapping;
  /** Cells of its attributes that the run learns from: `nameCount` of these. */
  readonly nameCells = new Int32Array(MAX_ATTRIBUTES);
  nameCount = 0;
  /** The trace id of the line before: it is mostly the same. */
  private traceId: Literal | undefined;
  /** The event that the last line of each kind had. */
  private readonly lastEvents: EventMapping[];
  private bytes: Buffer = EMPTY;
  /** Of the same bytes. */
  view: DataView = new DataView(EMPTY.buffer);
  private lineStart = 0;
  private at = 0;
  private end = 0;
  private isChecked = false;

  constructor(private readonly mappings: EventMappings) {
    this.event = mappings.unknown;
    this.lastEvents = [this.event, this.event, this.event];
  }

  /** The bytes that lines are read from now. */
  use(bytes: Buffer): void {
    if (bytes === this.bytes) return;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /**
   * Reads a line, which a line break follows.
   * @param isChecked the line was written by `formatRecordLine`: it is a record in any case
   * @returns whether it could; else what is in the cells means nothing.
   */
  scan(start: number, end: number, isChecked = false): boolean {
    this.lineStart = this.at = start;
    this.end = end;
    this.isChecked = isChecked;
    if (this.passes(RECORD_LOG)) return this.scanLog();
    this.kind = this.passes(RECORD_END) ? SPAN_END : SPAN_START;
    const isEnd = this.kind === SPAN_END;
    if (!isEnd && !this.passes(RECORD_START)) return false;
    if (!this.passesTraceId() || !this.passes(SPAN_ID) || !this.readId(CELL.spanHigh)) return false;
    if (!this.passes(SPAN_NAME) || !this.readText(CELL.name)) return false;
    if (!this.readParent() || !this.readLinks() || !this.readTime(CELL.start)) return false;
    if (isEnd && !(this.passes(END_TIME) && this.readTime(CELL.end))) return false;
    if (!this.passes(SEVERITY_NUMBER) || !this.readInteger(-1)) return false;
    if (!this.passes(SEVERITY_TEXT) || !this.readText(-1)) return false;
    if (isEnd) {
      if (!this.passes(STATUS) || !this.readStatus()) return false;
    } else if (!this.passes(EVENT_TYPE)) return false;
    return this.readEventType() && this.readAttributes();
  }

  private scanLog(): boolean {
    const { cells } = this;
    this.kind = LOG_RECORD;
    if (!this.passesTraceId()) return false;
    cells[CELL.spanHigh] = cells[CELL.spanLow] = 0;
    if (this.passes(SPAN_ID)) {
      if (!this.readId(CELL.spanHigh) || !this.passes(LOG_SPAN_NAME)) return false;
    } else if (!this.passes(NO_SPAN_ID)) return false;
    if (!this.passesTextOrNull() || !this.passes(EVENT_ID) || !this.passesTextOrNull()) return false;
    if (!this.passes(LOG_TIME) || !this.readTime(CELL.start)) return false;
    if (!this.passes(SEVERITY_NUMBER) || !this.readInteger(CELL.severityNumber)) return false;
    if (!this.passes(SEVERITY_TEXT) || !this.readText(CELL.severityText)) return false;
    // The text says what the number leaves open.
    const isOpen = cells[CELL.severityNumber] === 0 && cells[CELL.severityText] !== cells[CELL.severityText + 1];
    if (isOpen && !this.isChecked) return false;
    if (!this.passes(BODY) || !this.readText(CELL.name) || !this.passes(EVENT_TYPE)) return false;
    cells[CELL.linkCount] = 0;
    return this.readEventType() && this.readAttributes();
  }

  private passes(literal: Literal): boolean {
    if (!literal.isAt(this.view, this.at, this.end)) return false;
    this.at += literal.length;
    return true;
  }

  private passesTraceId(): boolean {
    if (this.traceId !== undefined && this.passes(this.traceId)) return true;
    const start = this.at;
    if (!this.passesHex(TRACE_ID_DIGITS)) return false;
    this.traceId = new Literal(this.bytes.toString('latin1', start, this.at));
    return true;
  }

  /** 16 lowercase hexadecimal digits, not all zero. */
  private readId(cell: number): boolean {
    const { bytes, cells, at } = this;
    let high = 0;
    let low = 0;
    let invalid = 0;
    for (let index = at; index < at + 8; index++) {
      const digit = HEX[bytes[index] as number] as number;
      invalid |= digit;
      high = (high << 4) | digit;
    }
    for (let index = at + 8; index < at + 16; index++) {
      const digit = HEX[bytes[index] as number] as number;
      invalid |= digit;
      low = (low << 4) | digit;
    }
    if (invalid < 0 || at + 16 > this.end || (high === 0 && low === 0)) return false;
    cells[cell] = high;
    cells[cell + 1] = low;
    this.at = at + 16;
    return true;
  }

  /** A text from behind its opening quote up to the closing one, where the next part begins. @param cell -1 for none */
  private readText(cell: number): boolean {
    const start = this.at;
    let end = this.endOfPlain(start);
    const isPlain = this.bytes[end] === QUOTE;
    if (!isPlain) end = this.endOfEscaped(end);
    if (end >= this.end) return false;
    if (!isPlain && !this.isJson(start - 1, end + 1)) return false;
    this.at = end;
    if (cell < 0) return true;
    this.cells[cell] = start - this.lineStart;
    this.cells[cell + 1] = isPlain ? end - this.lineStart : ~(end - this.lineStart);
    return true;
  }

  private passesTextOrNull(): boolean {
    if (this.passes(NULL_TEXT)) return true;
    if (this.bytes[this.at] !== QUOTE) return false;
    this.at++;
    if (!this.readText(-1)) return false;
    this.at++;
    return true;
  }

  private endOfPlain(start: number): number {
    const { bytes } = this;
    let at = start;
    while (PLAIN[bytes[at] as number] === 1) at++;
    return at;
  }

  /** The closing quote of a text; the line's end, or more, where there is none. */
  private endOfEscaped(start: number): number {
    const { bytes, end } = this;
    let at = start;
    while (at < end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    return at;
  }

  private readParent(): boolean {
    const { cells } = this;
    cells[CELL.parentHigh] = cells[CELL.parentLow] = 0;
    return this.passes(NO_PARENT) || (this.passes(PARENT) && this.readId(CELL.parentHigh) && this.passes(LINKS));
  }

  private readLinks(): boolean {
    this.cells[CELL.linkCount] = 0;
    if (this.passes(NO_LINKS)) return true;
    const start = this.at;
    return this.readUsualLinks() || this.readOtherLinks(start);
  }

  /** Links without attributes, as the engine's are. */
  private readUsualLinks(): boolean {
    const { cells } = this;
    if (this.bytes[this.at++] !== OPEN_LIST) return false;
    for (let count = 1; count <= MAX_LINKS; count++) {
      const cell = CELL.links + (count - 1) * LINK_CELLS;
      cells[CELL.linkCount] = count;
      if (!this.passes(LINK)) return false;
      cells[cell] = this.at - this.lineStart;
      if (!this.passesHex(TRACE_ID_DIGITS) || !this.passes(SPAN_ID)) return false;
      cells[cell + 1] = this.at - this.lineStart;
      if (!this.passesHex(16) || !this.passes(LINK_END)) return false;
      if (this.passes(LAST_LINK)) return true;
      if (this.bytes[this.at++] !== COMMA) return false;
    }
    return false;
  }

  private readOtherLinks(start: number): boolean {
    if (!this.isChecked) return false;
    const { cells } = this;
    this.at = this.endOfValue(start);
    cells[CELL.linkCount] = -1;
    cells[CELL.links] = start - this.lineStart;
    cells[CELL.links + 1] = this.at - this.lineStart;
    return this.passes(START_TIME);
  }

  private passesHex(digits: number): boolean {
    const { bytes, at } = this;
    let invalid = 0;
    let any = 0;
    for (let index = at; index < at + digits; index++) {
      const digit = HEX[bytes[index] as number] as number;
      invalid |= digit;
      any |= digit;
    }
    this.at += digits;
    return invalid >= 0 && any > 0 && this.at <= this.end;
  }

  /** Up to 19 digits of nanoseconds, as seconds and nanoseconds. */
  private readTime(cell: number): boolean {
    const { bytes, at, cells } = this;
    let end = at;
    while (((bytes[end] as number) - ZERO) >>> 0 < 10) end++;
    if (end === at || end > at + MAX_TIME_DIGITS || end >= this.end) return false;
    const secondsEnd = Math.max(at, end - NANOS_DIGITS);
    let seconds = 0;
    let nanos = 0;
    for (let index = at; index < secondsEnd; index++) seconds = seconds * 10 + (bytes[index] as number) - ZERO;
    for (let index = secondsEnd; index < end; index++) nanos = nanos * 10 + (bytes[index] as number) - ZERO;
    // Times end at 2^63 nanoseconds; which of those in the last second are too late, the general parser knows.
    if (seconds >= MAX_SECONDS && !(this.isChecked && seconds === MAX_SECONDS)) return false;
    cells[cell] = seconds;
    cells[cell + 1] = nanos | (Math.floor(seconds / TWO_TO_32) << NANOS_BITS);
    this.at = end;
    return true;
  }

  /** A whole number of 32 bits. @param cell -1 for none */
  private readInteger(cell: number): boolean {
    const { bytes } = this;
    const isNegative = bytes[this.at] === MINUS;
    if (isNegative) this.at++;
    const start = this.at;
    let value = 0;
    for (; ((bytes[this.at] as number) - ZERO) >>> 0 < 10; this.at++) {
      value = value * 10 + (bytes[this.at] as number) - ZERO;
    }
    const digits = this.at - start;
    if (digits === 0 || value > MAX_INT32 || (bytes[start] === ZERO && (digits > 1 || isNegative))) return false;
    if (cell >= 0) this.cells[cell] = isNegative ? -value : value;
    return true;
  }

  private readStatus(): boolean {
    const { cells } = this;
    cells[CELL.statusCode] = cells[CELL.message] = cells[CELL.message + 1] = 0;
    if (this.passes(NO_STATUS)) return true;
    if (!this.passes(NO_MESSAGE)) {
      if (!this.passes(MESSAGE) || !this.readText(CELL.message) || !this.passes(STATUS_CODE)) return false;
    }
    if (!this.readInteger(CELL.statusCode)) return false;
    const code = cells[CELL.statusCode] as number;
    if (code < 0 || code > 2) cells[CELL.statusCode] = 0;
    return this.passes(STATUS_END);
  }

  private readEventType(): boolean {
    const expected = this.lastEvents[this.kind] as EventMapping;
    const { cells, at, mappings } = this;
    if (!expected.isUnknown && this.passes(expected.tail)) this.event = expected;
    else {
      if (!this.readText(CELL.eventType)) return false;
      const end = cells[CELL.eventType + 1] as number;
      const event = isEscaped(end)
        ? undefined
        : mappings.event(mappings.texts.textOf(this.bytes, this.view, at, this.at));
      this.event = this.lastEvents[this.kind] = event ?? mappings.unknown;
      if (!this.passes(ATTRIBUTES)) return false;
    }
    cells[CELL.event] = this.event.index;
    cells[CELL.attributes] = this.at - 1 - this.lineStart;
    return true;
  }

  private readAttributes(): boolean {
    const start = this.at - 1;
    if (!this.event.isUnknown && this.readKnownAttributes(this.event)) return true;
    // The record's own brace, and with it the line, ends behind the attributes.
    if (this.bytes[this.end - 1] !== CLOSE || !this.isJson(start, this.end - 1)) return false;
    this.cells[CELL.attributeCount] = -1;
    this.cells[CELL.roles] = this.nameCount = 0;
    this.cellCount = this.firstAttributeCell();
    return true;
  }

  private firstAttributeCell(): number {
    return CELL.links + Math.abs(this.cells[CELL.linkCount] as number) * LINK_CELLS;
  }

  private readKnownAttributes(event: EventMapping): boolean {
    const { bytes, cells, nameCells } = this;
    const lineNumber = ++this.mappings.lineNumber;
    let cell = this.firstAttributeCell();
    let count = 0;
    let roles = 0;
    let nameCount = 0;
    // Starts and ends differ in a few attributes: each expects what the last of its kind had.
    const chain = this.kind === SPAN_END ? 1 : 0;
    let previous = event.before;
    if (bytes[this.at] !== CLOSE) {
      for (;;) {
        const expected = previous.next[chain];
        const mapping = expected !== undefined && this.passes(expected.quoted) ? expected : this.readKey(event);
        if (mapping === undefined || mapping.lineNumber === lineNumber || ++count > MAX_ATTRIBUTES) return false;
        mapping.lineNumber = lineNumber;
        if (mapping !== expected) previous.next[chain] = mapping;
        previous = mapping;
        if (mapping.role >= 0) roles |= 1 << mapping.role;
        if (mapping.isName || mapping.isAdapter) nameCells[nameCount++] = cell;
        if (!this.readValue(cell, mapping)) return false;
        cell += ATTRIBUTE_CELLS;
        const next = bytes[this.at++];
        if (next === CLOSE) break;
        if (next !== COMMA) return false;
      }
    } else this.at++;
    cells[CELL.attributeCount] = count;
    cells[CELL.roles] = roles;
    this.nameCount = nameCount;
    this.cellCount = cell;
    // The record's own brace, and with it the line, ends here.
    return bytes[this.at] === CLOSE && this.at + 1 === this.end;
  }

  private readKey(event: EventMapping): AttributeMapping | undefined {
    if (this.bytes[this.at] !== QUOTE) return undefined;
    const start = this.at + 1;
    const end = this.endOfPlain(start);
    if (end >= this.end) return undefined;
    const name = this.mappings.texts.textOf(this.bytes, this.view, start, end);
    const mapping = event.attribute(name);
    return mapping !== undefined && this.passes(mapping.quoted) ? mapping : undefined;
  }

  private readValue(cell: number, { cell: mapping, isReadAtOnce }: AttributeMapping): boolean {
    const { bytes, at } = this;
    const first = bytes[at] as number;
    if (first === QUOTE) {
      const end = this.endOfPlain(at + 1);
      if (bytes[end] === QUOTE) return this.setValue(cell, mapping, PLAIN_TEXT, at + 1, end, end + 1);
      const behind = this.endOfEscaped(end) + 1;
      if (behind > this.end || (isReadAtOnce && !this.isJson(at, behind))) return false;
      return this.setValue(cell, mapping, OTHER_TEXT, at, behind, behind);
    }
    if ((first - ZERO) >>> 0 < 10) {
      let end = at + 1;
      while (((bytes[end] as number) - ZERO) >>> 0 < 10) end++;
      const isWhole = bytes[end] === COMMA || bytes[end] === CLOSE;
      const isCanonical = first !== ZERO || end === at + 1;
      if (!isWhole || !isCanonical || end > at + 15) return this.readOther(cell, mapping);
      return this.setValue(cell, mapping, INTEGER, at, end, end);
    }
    if (this.passes(TRUE_TEXT)) return this.setValue(cell, mapping, TRUE, at, this.at, this.at);
    if (this.passes(FALSE_TEXT)) return this.setValue(cell, mapping, FALSE, at, this.at, this.at);
    if (this.passes(NULL_TEXT)) return this.setValue(cell, mapping, NULL, at, this.at, this.at);
    return this.readOther(cell, mapping);
  }

  private setValue(cell: number, mapping: number, kind: number, start: number, end: number, next: number): boolean {
    const { cells, lineStart } = this;
    cells[cell] = mapping | kind;
    cells[cell + 1] = start - lineStart;
    cells[cell + 2] = end - lineStart;
    this.at = next;
    return true;
  }

  private readOther(cell: number, mapping: number): boolean {
    const start = this.at;
    const end = this.endOfValue(start);
    return end < this.end && end > start && this.setValue(cell, mapping, OTHER, start, end, end);
  }

  /** Whether a part of the line is JSON. */
  private isJson(start: number, end: number): boolean {
    if (this.isChecked) return true;
    try {
      JSON.parse(this.bytes.toString('utf8', start, end));
      return true;
    } catch {
      return false;
    }
  }

  /** Where the comma or brace behind a value stands. */
  private endOfValue(start: number): number {
    const { bytes, end } = this;
    let depth = 0;
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) at = this.endOfEscaped(at + 1);
      else if (byte === OPEN || byte === OPEN_LIST) depth++;
      else if (byte === CLOSE || byte === CLOSE_LIST) {
        if (depth === 0) break;
        depth--;
      } else if (byte === COMMA && depth === 0) break;
    }
    return at;
  }
}

const EMPTY = Buffer.alloc(0);
const ZERO = 0x30;
const MINUS = 0x2d;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const TRACE_ID_DIGITS = 32;
const NANOS_DIGITS = 9;
const MAX_TIME_DIGITS = 19;
const MAX_INT32 = 2 ** 31 - 1;
/** Whole seconds in 2^63 nanoseconds. */
const MAX_SECONDS = 9_223_372_036;

const RECORD_START = new Literal('{"record_type":"SpanStart","trace_id":"');
const RECORD_END = new Literal('{"record_type":"SpanEnd","trace_id":"');
const RECORD_LOG = new Literal('{"record_type":"LogRecord","trace_id":"');
const SPAN_ID = new Literal('","span_id":"');
const NO_SPAN_ID = new Literal('","span_id":null,"span_name":');
const LOG_SPAN_NAME = new Literal('","span_name":');
const EVENT_ID = new Literal(',"event_id":');
const LOG_TIME = new Literal(',"time_unix_nano":"');
const BODY = new Literal('","body":"');
const SPAN_NAME = new Literal('","span_name":"');
const NO_PARENT = new Literal('","parent_span_id":null,"links":');
const PARENT = new Literal('","parent_span_id":"');
const LINKS = new Literal('","links":');
const NO_LINKS = new Literal('null,"start_time_unix_nano":"');
const LINK = new Literal('{"trace_id":"');
const LINK_END = new Literal('","attributes":{}}');
const LAST_LINK = new Literal('],"start_time_unix_nano":"');
const START_TIME = new Literal(',"start_time_unix_nano":"');
const END_TIME = new Literal('","end_time_unix_nano":"');
const SEVERITY_NUMBER = new Literal('","severity_number":');
const SEVERITY_TEXT = new Literal(',"severity_text":"');
const EVENT_TYPE = new Literal('","event_type":"');
const ATTRIBUTES = new Literal('","attributes":{');
const STATUS = new Literal('","status":');
const NO_STATUS = new Literal('null,"event_type":"');
const NO_MESSAGE = new Literal('{"message":null,"code":');
const MESSAGE = new Literal('{"message":"');
const STATUS_CODE = new Literal('","code":');
const STATUS_END = new Literal('},"event_type":"');
const TRUE_TEXT = new Literal('true');
const FALSE_TEXT = new Literal('false');
const NULL_TEXT = new Literal('null');

/** Values of hexadecimal digits, lowercase as the engine writes them; -1 for any other byte. */
const HEX = new Int8Array(256).fill(-1);
for (const [value, digit] of [...'0123456789abcdef'].entries()) HEX[digit.charCodeAt(0)] = value;
/** 1 for bytes that stand for themselves in a JSON text: ASCII but quotes, backslashes and control characters. */
const PLAIN = new Uint8Array(256).fill(1, 0x20, 0x80);
PLAIN[QUOTE] = PLAIN[BACKSLASH] = 0;
