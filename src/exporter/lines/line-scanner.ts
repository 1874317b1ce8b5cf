import type { AttributePlan } from './attribute-plan.js';
import type { EventPlan } from './event-plan.js';
import type { EventPlans } from './event-plans.js';
import {
  ATTRIBUTE_CELLS,
  CELL,
  FALSE,
  INTEGER,
  LINK_CELLS,
  MAX_ATTRIBUTES,
  MAX_CELLS,
  MAX_LINKS,
  NULL,
  OTHER,
  OTHER_TEXT,
  PLAIN_TEXT,
  TRUE,
} from './line-cells.js';
import { Literal } from './literal.js';

/**
 * Reads lines of spans that are laid out as the engine lays out its own, from their bytes to cells: nothing is made of
 * them but numbers. Any line that is not of that layout to the letter is left to the general parser. Of values that are
 * neither plain texts nor plain numbers only the end is found: whether they are JSON shows when they are parsed, except of
 * the texts that are read at once.
 */
export class LineScanner {
  /** Of the line that was read last; see `line-cells.ts`. */
  readonly cells = new Int32Array(MAX_CELLS);
  cellCount = 0;
  isEnd = false;
  event: EventPlan | undefined;
  /** Cells of its attributes that the run learns from: `nameCount` of these. */
  readonly nameCells = new Int32Array(MAX_ATTRIBUTES);
  nameCount = 0;
  private readonly traceIdText: Literal;
  private bytes: Buffer = EMPTY;
  /** Of the same bytes. */
  view: DataView = new DataView(EMPTY.buffer);
  private lineStart = 0;
  private at = 0;
  private end = 0;

  /** @param traceId the run's; lines of another trace are left to the general parser. */
  constructor(
    readonly traceId: string,
    private readonly plans: EventPlans,
  ) {
    this.traceIdText = new Literal(traceId);
  }

  /** The bytes that lines are read from now. */
  use(bytes: Buffer): void {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Reads a line, without its line break. @returns whether it could; else what is in the cells means nothing. */
  scan(start: number, end: number): boolean {
    this.lineStart = this.at = start;
    this.end = end;
    this.plans.known.lineNumber++;
    this.isEnd = this.passes(RECORD_END);
    if (!this.isEnd && !this.passes(RECORD_START)) return false;
    if (!this.passes(this.traceIdText) || !this.passes(SPAN_ID) || !this.readId(CELL.spanHigh)) return false;
    const { cells } = this;
    if (cells[CELL.spanHigh] === 0 && cells[CELL.spanLow] === 0) return false;
    if (!this.passes(SPAN_NAME) || !this.readPlain(CELL.nameStart)) return false;
    if (!this.readParent() || !this.readLinks() || !this.readTime(CELL.startSeconds)) return false;
    if (this.isEnd && !(this.passes(END_TIME) && this.readTime(CELL.endSeconds))) return false;
    return this.readSeverity() && (!this.isEnd || this.readStatus()) && this.readEventType() && this.readAttributes();
  }

  private passes(literal: Literal): boolean {
    if (!literal.isAt(this.view, this.at, this.end)) return false;
    this.at += literal.length;
    return true;
  }

  /** 16 lowercase hexadecimal digits. */
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
    if (invalid < 0 || at + 16 > this.end) return false;
    cells[cell] = high;
    cells[cell + 1] = low;
    this.at = at + 16;
    return true;
  }

  /** A plain text up to its quote, where the next part begins. */
  private readPlain(cell: number): boolean {
    const start = this.at;
    const end = this.endOfPlain(start);
    if (this.bytes[end] !== QUOTE || end >= this.end) return false;
    this.cells[cell] = start - this.lineStart;
    this.cells[cell + 1] = end - this.lineStart;
    this.at = end;
    return true;
  }

  private endOfPlain(start: number): number {
    const { bytes } = this;
    let at = start;
    while (PLAIN[bytes[at] as number] === 1) at++;
    return at;
  }

  private readParent(): boolean {
    const { cells } = this;
    cells[CELL.parentHigh] = cells[CELL.parentLow] = 0;
    if (this.passes(NO_PARENT)) return true;
    if (!this.passes(PARENT) || !this.readId(CELL.parentHigh) || !this.passes(LINKS)) return false;
    return cells[CELL.parentHigh] !== 0 || cells[CELL.parentLow] !== 0;
  }

  /** Links without attributes, as the engine's are. */
  private readLinks(): boolean {
    const { cells } = this;
    cells[CELL.linkCount] = 0;
    if (this.passes(NO_LINKS)) return true;
    if (this.bytes[this.at++] !== OPEN_LIST) return false;
    for (let count = 1; count <= MAX_LINKS; count++) {
      const cell = CELL.links + (count - 1) * LINK_CELLS;
      cells[CELL.linkCount] = count;
      if (!this.passes(LINK)) return false;
      cells[cell] = this.at - this.lineStart;
      if (!this.passesHex(32) || !this.passes(SPAN_ID)) return false;
      cells[cell + 1] = this.at - this.lineStart;
      if (!this.passesHex(16) || !this.passes(LINK_END)) return false;
      if (this.passes(LAST_LINK)) return true;
      if (this.bytes[this.at++] !== COMMA) return false;
    }
    return false;
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

  /** 10 to 19 digits of nanoseconds, as seconds and nanoseconds. */
  private readTime(cell: number): boolean {
    const { bytes, at, cells } = this;
    let end = at;
    while (((bytes[end] as number) - ZERO) >>> 0 < 10) end++;
    const secondsEnd = end - 9;
    if (secondsEnd <= at || secondsEnd > at + 10 || end >= this.end) return false;
    let seconds = 0;
    let nanos = 0;
    for (let index = at; index < secondsEnd; index++) seconds = seconds * 10 + (bytes[index] as number) - ZERO;
    for (let index = secondsEnd; index < end; index++) nanos = nanos * 10 + (bytes[index] as number) - ZERO;
    if (seconds > MAX_UINT32) return false;
    cells[cell] = seconds;
    cells[cell + 1] = nanos;
    this.at = end;
    return true;
  }

  /** The severity is not exported with a span: it only has to be one. */
  private readSeverity(): boolean {
    if (!this.passes(SEVERITY_NUMBER)) return false;
    const { bytes } = this;
    const first = (bytes[this.at++] as number) - ZERO;
    if (first >>> 0 > 9) return false;
    if (((bytes[this.at] as number) - ZERO) >>> 0 <= 9) {
      if (first === 0) return false;
      this.at++;
    }
    if (!this.passes(SEVERITY_TEXT)) return false;
    this.at = this.endOfPlain(this.at);
    return this.passes(this.isEnd ? STATUS : EVENT_TYPE);
  }

  private readStatus(): boolean {
    const { cells, bytes } = this;
    cells[CELL.statusCode] = cells[CELL.messageStart] = cells[CELL.messageEnd] = 0;
    if (this.passes(NO_STATUS)) return true;
    if (!this.passes(NO_MESSAGE)) {
      if (!this.passes(MESSAGE) || !this.readPlain(CELL.messageStart) || !this.passes(STATUS_CODE)) return false;
    }
    const code = (bytes[this.at++] as number) - ZERO;
    if (code >>> 0 > 2) return false;
    cells[CELL.statusCode] = code;
    return this.passes(STATUS_END);
  }

  private readEventType(): boolean {
    if (this.event === undefined || !this.passes(this.event.tail)) {
      const start = this.at;
      const end = this.endOfPlain(start);
      this.event = this.plans.event(this.plans.texts.textOf(this.bytes, this.view, start, end));
      if (this.event === undefined || !this.passes(this.event.tail)) return false;
    }
    this.cells[CELL.event] = this.event.index;
    return !this.event.isGeneral;
  }

  private readAttributes(): boolean {
    const { bytes, cells, nameCells, event } = this;
    const { lineNumber } = this.plans.known;
    if (event === undefined) return false;
    let cell = CELL.links + (cells[CELL.linkCount] as number) * LINK_CELLS;
    let count = 0;
    let roles = 0;
    let nameCount = 0;
    // Starts and ends differ in a few attributes: each expects what the last of its kind had.
    const chain = this.isEnd ? 1 : 0;
    let previous = event.before;
    if (bytes[this.at] !== CLOSE) {
      for (;;) {
        const expected = previous.next[chain];
        const plan = expected !== undefined && this.passes(expected.quoted) ? expected : this.readKey(event);
        if (plan === undefined || plan.lineNumber === lineNumber || ++count > MAX_ATTRIBUTES) return false;
        plan.lineNumber = lineNumber;
        if (plan !== expected) previous.next[chain] = plan;
        previous = plan;
        if (plan.role >= 0) roles |= 1 << plan.role;
        if (plan.isName || plan.isAdapter) nameCells[nameCount++] = cell;
        if (!this.readValue(cell, plan)) return false;
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

  private readKey(event: EventPlan): AttributePlan | undefined {
    if (this.bytes[this.at] !== QUOTE) return undefined;
    const start = this.at + 1;
    const end = this.endOfPlain(start);
    if (end >= this.end) return undefined;
    const name = this.plans.texts.textOf(this.bytes, this.view, start, end);
    const plan = event.attribute(name);
    return plan !== undefined && this.passes(plan.quoted) ? plan : undefined;
  }

  private readValue(cell: number, { cell: plan, isReadAtOnce }: AttributePlan): boolean {
    const { bytes, at } = this;
    const first = bytes[at] as number;
    if (first === QUOTE) {
      const end = this.endOfPlain(at + 1);
      if (bytes[end] !== QUOTE) return this.readOther(cell, plan, OTHER_TEXT) && (!isReadAtOnce || this.isJson(at));
      return this.setValue(cell, plan, PLAIN_TEXT, at + 1, end, end + 1);
    }
    if ((first - ZERO) >>> 0 < 10) {
      let end = at + 1;
      while (((bytes[end] as number) - ZERO) >>> 0 < 10) end++;
      const isWhole = bytes[end] === COMMA || bytes[end] === CLOSE;
      const isCanonical = first !== ZERO || end === at + 1;
      if (!isWhole || !isCanonical || end > at + 15) return this.readOther(cell, plan, OTHER);
      return this.setValue(cell, plan, INTEGER, at, end, end);
    }
    if (this.passes(TRUE_TEXT)) return this.setValue(cell, plan, TRUE, at, this.at, this.at);
    if (this.passes(FALSE_TEXT)) return this.setValue(cell, plan, FALSE, at, this.at, this.at);
    if (this.passes(NULL_TEXT)) return this.setValue(cell, plan, NULL, at, this.at, this.at);
    return this.readOther(cell, plan, OTHER);
  }

  private setValue(cell: number, plan: number, kind: number, start: number, end: number, next: number): boolean {
    const { cells, lineStart } = this;
    cells[cell] = plan | kind;
    cells[cell + 1] = start - lineStart;
    cells[cell + 2] = end - lineStart;
    this.at = next;
    return true;
  }

  /** Whether what was read from `start` on is JSON. */
  private isJson(start: number): boolean {
    try {
      JSON.parse(this.bytes.toString('utf8', start, this.at));
      return true;
    } catch {
      return false;
    }
  }

  /** A value up to the comma or brace behind it. */
  private readOther(cell: number, plan: number, kind: number): boolean {
    const { bytes, at: start, end } = this;
    let depth = 0;
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        at++;
        while (at < end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
      } else if (byte === OPEN || byte === OPEN_LIST) depth++;
      else if (byte === CLOSE || byte === CLOSE_LIST) {
        if (depth === 0) break;
        depth--;
      } else if (byte === COMMA && depth === 0) break;
    }
    return at < end && at > start && this.setValue(cell, plan, kind, start, at, at);
  }
}

const EMPTY = Buffer.alloc(0);
const ZERO = 0x30;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const MAX_UINT32 = 2 ** 32 - 1;

const RECORD_START = new Literal('{"record_type":"SpanStart","trace_id":"');
const RECORD_END = new Literal('{"record_type":"SpanEnd","trace_id":"');
const SPAN_ID = new Literal('","span_id":"');
const SPAN_NAME = new Literal('","span_name":"');
const NO_PARENT = new Literal('","parent_span_id":null,"links":');
const PARENT = new Literal('","parent_span_id":"');
const LINKS = new Literal('","links":');
const NO_LINKS = new Literal('null,"start_time_unix_nano":"');
const LINK = new Literal('{"trace_id":"');
const LINK_END = new Literal('","attributes":{}}');
const LAST_LINK = new Literal('],"start_time_unix_nano":"');
const END_TIME = new Literal('","end_time_unix_nano":"');
const SEVERITY_NUMBER = new Literal('","severity_number":');
const SEVERITY_TEXT = new Literal(',"severity_text":"');
const EVENT_TYPE = new Literal('","event_type":"');
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
