import { constant, isSame, MAX_RECORD_BYTES, type Range, view } from '../../record/arena.js';
import { MAX_ATTRIBUTES } from '../../record/cells.js';
import { CLOSE, COMMA, isOpening, JsonChecker, OPEN, OPEN_LIST, QUOTE } from '../../record/json-line.js';
import { ENUM_FIELDS } from '../attribute-schema.js';
import { type AttributeLayout, type EventLayout, Form, type KeyStep, type Layouts } from './layouts.js';
import { HEX, nineDigits } from './line-text.js';
import {
  BODY,
  CODES,
  END_HEAD,
  END_TIME,
  EVENT_ID,
  FALSE,
  LINK_HEAD,
  LINK_TAIL,
  LINKS,
  LOG_HEAD,
  LOG_SPAN_NAME,
  MESSAGE,
  NO_PARENT,
  NULL,
  PARENT,
  SEVERITY_NUMBER,
  SEVERITY_TEXT,
  SPAN_ID,
  SPAN_NAME,
  START_HEAD,
  START_TIME,
  STATUS,
  TRUE,
} from './line-writer.js';

/** What a line holds. */
export const LineKind = {
  start: 0,
  span: 1,
  log: 2,
  /** Anything that `LineWriter` would not have written so: for plain code. */
  other: 3,
} as const;

/** The event's id and what stands behind it, where there is one. */
const OWN_EVENT_ID = constant(',"event_id":"');
const TIME = constant('","time_unix_nano":"');
const EVENT_TYPE = constant('","event_type":"');
const ATTRIBUTES = constant('","attributes":');
const RUN_PHASE = constant('EXECUTION_PHASE_RUN');

const LINE_BREAK = 0x0a;
const ZERO = 0x30;
const NANOS_A_SECOND = 1e9;
const TRACE_ID_DIGITS = 32;
const MAX_SEVERITY = 24;
/** The higher half of the last time that 63 bits hold. */
const MAX_HIGH = 0x7fff_ffff;
const MAX_KEY_BYTES = 127;
/** What the bytes of a varint can hold that `ItemCells` reads as a value. */
const MAX_INTEGER = 2 ** 28 - 1;
const MAX_INTEGER_DIGITS = 9;

/** 1 for what names of attributes are made of. */
const NAME_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => (/[\w.-]/.test(String.fromCharCode(byte)) ? 1 : 0));
NAME_BYTES.fill(0, 0x80);

/** What a line says; a record has at most one of each. */
export const Field = {
  ownId: 0,
  parentId: 1,
  startTime: 2,
  endTime: 3,
  logTime: 4,
  name: 5,
  severity: 6,
  body: 7,
  event: 8,
  message: 9,
} as const;

/**
 * Takes what a line says, in its order: `ItemSink` as the item on the wire that the line came from, `CellSink` as cells. Where a line
 * turns out to be none, what was taken counts for nothing.
 */
export interface LineSink {
  /** Whether all is wanted that lines have and the wire has not: starts, which become spans without an end, names of log records' spans, and events' ids. */
  readonly isWhole: boolean;
  /** Where the text begins and ends that was read last, without its escapes. */
  readonly textStart: number;
  readonly textEnd: number;
  /** @param to where there is room for what is written */
  begin(isLog: boolean, to: number): void;
  /** @param words its 16 bytes */
  traceId(words: Int32Array): void;
  /** @param field one of `Field`, as below */
  id(field: number, high: number, low: number): void;
  /** The one link, to another span of the same trace. */
  link(high: number, low: number): void;
  time(field: number, high: number, low: number): void;
  /**
   * Reads a text from the line, behind its quote, up to `limit` at most.
   * @returns where its closing quote stands; -1 where it has none, or `LineWriter` writes the text otherwise
   */
  text(field: number, from: number, limit: number): number;
  /** The same for a text that the wire does not have. */
  aside(from: number, limit: number): number;
  /** The number of a log record's severity. */
  severity(number: number): void;
  /** A code, behind the message if there is one. */
  status(code: number): void;
  /** An attribute begins. */
  key(key: Range): void;
  /** The same as `text` for its value, which `endText` ends. */
  value(from: number, limit: number): number;
  endText(): void;
  /** Its value is JSON, as it stands in the line. */
  json(from: number, length: number, limit: number): void;
  integer(value: number): void;
  bool(value: number): void;
  /** @param last the key that came last @returns whether the record is such as has cells */
  end(last: KeyStep): boolean;
}

/**
 * Reads lines of the record log: for exports after a restart, or to a destination that lags behind, and for Parquet. It takes nothing for
 * granted: where it reads a SpanEnd or a log record, `LineWriter` writes that very line of the record's cells, but for the name of
 * a log record's span, which OTLP does not carry.
 */
export class LineScanner<Sink extends LineSink> {
  /** The halves of the id of the span whose start or end the line was, so that a start whose end follows directly can be passed over. */
  idHigh = 0;
  idLow = 0;
  /** Of a span's line: where its links stand, its time of start, and whether its severity is that of a phase in which a node is run. */
  linksAt = 0;
  startTimeAt = 0;
  isInfo = false;
  /** Where the first attribute begins, at the brace, and behind that where each ends, at its comma or brace. */
  readonly offsets = new Int32Array(MAX_ATTRIBUTES + 1);
  /** Where the name of the span stands in the line as JSON, or `null` of a log record. */
  nameAt = 0;
  nameEnd = 0;
  /** Texts that a log record's line has and the wire has not: the name of its span, and the event's id. They begin at 0 where there is none. */
  spanNameStart = 0;
  spanNameEnd = 0;
  eventIdStart = 0;
  eventIdEnd = 0;
  /** What is read next, and where the line ends at the latest. */
  private at = 0;
  private limit = 0;
  /** The halves of the id that was read last. */
  private high = 0;
  private low = 0;
  /** The trace id that was read last, and its digits: most lines have it again. */
  private readonly trace = new Int32Array(4);
  private readonly traceDigits = new Int32Array(TRACE_ID_DIGITS / 4);
  private hasTrace = false;
  private readonly linkTrace = new Int32Array(4);
  /** Whether it is the phase of an evaluated node in which it is run, as its attribute says. */
  private isRun = false;
  private readonly json = new JsonChecker(ENUM_FIELDS);

  constructor(
    private readonly layouts: Layouts,
    readonly sink: Sink,
  ) {}

  /**
   * Reads the line that begins at `start` in the arena (its line break stands before `limit`), and nothing from `limit` on. Of a start
   * nothing is looked at behind its id, unless all is wanted.
   * @param to where the sink writes, at most 4 KiB more than the line has
   * @returns what it is, one of `LineKind`
   */
  scan(start: number, limit: number, to: number): number {
    const { sink } = this;
    this.at = start;
    this.limit = Math.min(limit, start + MAX_RECORD_BYTES);
    sink.begin(false, to);
    if (this.passes(END_HEAD)) return this.span(true) ? LineKind.span : LineKind.other;
    if (this.passes(START_HEAD)) {
      return (sink.isWhole ? this.span(false) : this.startHead()) ? LineKind.start : LineKind.other;
    }
    if (!this.passes(LOG_HEAD)) return LineKind.other;
    sink.begin(true, to);
    return this.log() ? LineKind.log : LineKind.other;
  }

  private startHead(): boolean {
    return this.traceId() && this.passes(SPAN_ID) && this.ownId() && this.passes(SPAN_NAME);
  }

  private span(hasEnded: boolean): boolean {
    const { sink } = this;
    if (!this.startHead()) return false;
    this.nameAt = this.at - 1;
    if (!this.text(Field.name)) return false;
    this.nameEnd = this.at + 1;
    const event = this.layouts.ofSpan(sink.textStart, sink.textEnd);
    if (event === undefined || !this.parent()) return false;
    this.linksAt = this.at;
    if (!this.passes(NULL) && !this.link()) return false;
    if (!this.passes(START_TIME)) return false;
    this.startTimeAt = this.at;
    if (!this.time(Field.startTime)) return false;
    if (hasEnded && !(this.passes(END_TIME) && this.time(Field.endTime))) return false;
    this.isInfo = event.isEvaluated && this.passes(event.infoSeverity);
    if (!this.isInfo && !this.passes(event.usualSeverity)) return false;
    if ((hasEnded && !(this.passes(STATUS) && this.status())) || !this.passes(event.typeHead)) return false;
    return this.attributes(event) && this.isInfo === (event.isEvaluated && this.isRun);
  }

  private log(): boolean {
    const { sink } = this;
    if (!this.traceId() || !this.passes(SPAN_ID) || !this.ownId() || !this.passes(LOG_SPAN_NAME)) return false;
    this.spanNameStart = this.eventIdStart = 0;
    this.nameAt = this.at;
    if (!this.passes(NULL) && !this.passesName()) return false;
    this.nameEnd = this.at;
    if (!this.passes(EVENT_ID) && !(sink.isWhole && this.passesEventId())) return false;
    if (!this.time(Field.logTime)) return false;
    if (!this.passes(SEVERITY_NUMBER) || !this.severityNumber()) return false;
    if (!this.passes(SEVERITY_TEXT) || !this.text(Field.severity)) return false;
    if (!this.passes(BODY) || !this.text(Field.body) || !this.passes(EVENT_TYPE) || !this.text(Field.event))
      return false;
    const event = this.layouts.ofLog(sink.textStart, sink.textEnd);
    return event !== undefined && this.passes(ATTRIBUTES) && this.attributes(event);
  }

  /** A byte so far ahead; 0, which no line has, behind the last one. */
  private byte(ahead: number): number {
    return this.at + ahead < this.limit ? view.getUint8(this.at + ahead) : 0;
  }

  private passes({ at, length }: Range): boolean {
    if (this.at + length > this.limit || !isSame(at, this.at, length)) return false;
    this.at += length;
    return true;
  }

  private passesName(): boolean {
    const { sink } = this;
    if (this.byte(0) !== QUOTE) return false;
    const end = sink.aside(this.at + 1, this.limit);
    this.at = end + 1;
    this.spanNameStart = sink.textStart;
    this.spanNameEnd = sink.textEnd;
    return end >= 0;
  }

  private passesEventId(): boolean {
    const { sink } = this;
    if (!this.passes(OWN_EVENT_ID)) return false;
    const end = sink.aside(this.at, this.limit);
    this.at = end;
    this.eventIdStart = sink.textStart;
    this.eventIdEnd = sink.textEnd;
    return end >= 0 && this.passes(TIME);
  }

  private traceId(): boolean {
    const { trace } = this;
    if (!this.isTraceAgain()) {
      this.hasTrace = false;
      if (!this.words(trace) || trace.every((word) => word === 0)) return false;
      this.hasTrace = true;
    }
    this.sink.traceId(trace);
    return true;
  }

  /** Passes the digits of the trace id that was read last. */
  private isTraceAgain(): boolean {
    const { at, traceDigits } = this;
    if (at + TRACE_ID_DIGITS > this.limit) return false;
    let differences = 0;
    for (let word = 0; word < traceDigits.length; word++) {
      const digits = view.getInt32(at + 4 * word, true);
      differences |= (traceDigits[word] as number) ^ digits;
      traceDigits[word] = digits;
    }
    if (differences !== 0 || !this.hasTrace) return false;
    this.at = at + TRACE_ID_DIGITS;
    return true;
  }

  private words(words: Int32Array): boolean {
    for (let word = 0; word < words.length; word++) {
      if (!this.hexWord()) return false;
      words[word] = this.low;
    }
    return true;
  }

  private ownId(): boolean {
    if (!this.id()) return false;
    this.idHigh = this.high;
    this.idLow = this.low;
    this.sink.id(Field.ownId, this.high, this.low);
    return true;
  }

  private parent(): boolean {
    if (this.passes(NO_PARENT)) return true;
    if (!this.passes(PARENT) || !this.id() || !this.passes(LINKS)) return false;
    this.sink.id(Field.parentId, this.high, this.low);
    return true;
  }

  /** A span's id, which has a bit that is set. */
  private id(): boolean {
    if (!this.hexWord()) return false;
    this.high = this.low;
    return this.hexWord() && (this.high | this.low) !== 0;
  }

  /** Four bytes in hexadecimal digits, which become the low half. */
  private hexWord(): boolean {
    const { at } = this;
    if (at + 8 > this.limit) return false;
    let word = 0;
    let invalid = 0;
    for (let index = at; index < at + 8; index++) {
      const digit = HEX[view.getUint8(index)] as number;
      invalid |= digit;
      word = (word << 4) | digit;
    }
    this.low = word;
    this.at = at + 8;
    return invalid >= 0;
  }

  /** The only link, to another span of the trace, without attributes. */
  private link(): boolean {
    const { trace, linkTrace } = this;
    if (!this.passes(LINK_HEAD) || !this.words(linkTrace)) return false;
    for (let word = 0; word < trace.length; word++) if (trace[word] !== linkTrace[word]) return false;
    if (!this.passes(SPAN_ID) || !this.id() || !this.passes(LINK_TAIL)) return false;
    this.sink.link(this.high, this.low);
    return true;
  }

  /** A time of our days, whose seconds have ten digits. */
  private time(field: number): boolean {
    const { at } = this;
    if (at + 19 > this.limit || view.getUint8(at) === ZERO) return false;
    const tenSeconds = nineDigits(at);
    const second = view.getUint8(at + 9) - ZERO;
    const nanos = nineDigits(at + 10);
    if (tenSeconds < 0 || second >>> 0 > 9 || nanos < 0) return false;
    const seconds = tenSeconds * 10 + second;
    // 64 bits, as two numbers that are exact: the upper one in units of 2^16. A remainder of such numbers would be the call of a function.
    const upperSeconds = Math.floor(seconds / 0x1_0000);
    const upper = upperSeconds * NANOS_A_SECOND;
    const upperHigh = Math.floor(upper / 0x1_0000);
    const lower = (seconds - upperSeconds * 0x1_0000) * NANOS_A_SECOND + nanos;
    const low = lower + (upper - upperHigh * 0x1_0000) * 0x1_0000;
    const high = upperHigh + Math.floor(low / 0x1_0000_0000);
    this.at = at + 19;
    // From 2262 on.
    if (high > MAX_HIGH) return false;
    this.sink.time(field, high | 0, low | 0);
    return true;
  }

  private severityNumber(): boolean {
    const number = this.integer();
    if (number < 1 || number > MAX_SEVERITY) return false;
    this.sink.severity(number);
    return true;
  }

  /** A small whole number as it is written; -1 for another. */
  private integer(): number {
    const start = this.at;
    let value = 0;
    let { at } = this;
    for (const end = Math.min(this.limit, start + MAX_INTEGER_DIGITS); at < end; at++) {
      const digit = view.getUint8(at) - ZERO;
      if (digit >>> 0 > 9) break;
      value = value * 10 + digit;
    }
    this.at = at;
    if (at === start || (at > start + 1 && view.getUint8(start) === ZERO) || value > MAX_INTEGER) return -1;
    // What may go on in digits or as a fraction is not the literal that has to follow.
    return value;
  }

  private status(): boolean {
    if (this.passes(NULL)) return true;
    if (!this.passes(MESSAGE)) return false;
    const isSilent = this.passes(NULL);
    if (!isSilent) {
      if (this.byte(0) !== QUOTE || this.byte(1) === QUOTE) return false;
      this.at += 1;
      if (!this.text(Field.message)) return false;
      this.at += 1;
    }
    // No message and the code 0 are no status.
    for (let code = isSilent ? 1 : 0; code < CODES.length; code++) {
      if (!this.passes(CODES[code] as Range)) continue;
      this.sink.status(code);
      return true;
    }
    return false;
  }

  /** Reads the attributes, the record's own brace and the line's break. */
  private attributes(event: EventLayout): boolean {
    const { offsets } = this;
    this.isRun = false;
    offsets[0] = this.at;
    if (this.byte(0) !== OPEN) return false;
    if (this.byte(1) === CLOSE) {
      this.at += 2;
      return this.endsWith(event.first);
    }
    let step: KeyStep | undefined = event.first;
    for (let count = 0; count < MAX_ATTRIBUTES; count++) {
      step = this.key(step);
      if (step?.attribute === undefined || !this.attribute(step.attribute)) return false;
      offsets[count + 1] = this.at;
      const next = this.byte(0);
      if (next === CLOSE) {
        this.at += 1;
        return this.endsWith(step);
      }
      if (next !== COMMA) return false;
    }
    return false;
  }

  private endsWith(step: KeyStep): boolean {
    return this.byte(0) === CLOSE && this.byte(1) === LINE_BREAK && this.sink.end(step);
  }

  /** From the comma, or the brace, before a name to its value. */
  private key(before: KeyStep): KeyStep | undefined {
    const { next } = before;
    const quoted = next?.attribute?.quoted;
    const { at, limit } = this;
    if (quoted !== undefined) {
      // Without its comma, and the quote of a value that is a text.
      const length = quoted.length - 2;
      if (at + 1 + length <= limit && isSame(quoted.at + 1, at + 1, length)) {
        this.at = at + 1 + length;
        return next;
      }
    }
    if (this.byte(1) !== QUOTE) return undefined;
    const nameStart = at + 2;
    const most = Math.min(limit, nameStart + MAX_KEY_BYTES);
    let nameEnd = nameStart;
    while (nameEnd < most && NAME_BYTES[view.getUint8(nameEnd)] === 1) nameEnd++;
    const step = before.follow(nameStart, nameEnd - nameStart);
    const found = step?.attribute?.quoted;
    if (found === undefined) return undefined;
    const length = found.length - 2;
    if (at + 1 + length > limit || !isSame(found.at + 1, at + 1, length)) return undefined;
    this.at = at + 1 + length;
    return step;
  }

  private attribute(attribute: AttributeLayout): boolean {
    const { form, isSuspect, name } = attribute;
    if (isSuspect) return false;
    const { sink, at } = this;
    sink.key(attribute.key);
    switch (this.byte(0)) {
      case QUOTE: {
        const end = sink.value(at + 1, this.limit);
        if (end < 0) return false;
        this.at = end + 1;
        const { textStart, textEnd } = sink;
        if (form === Form.enum && attribute.valueAt(textStart, textEnd) === undefined) return false;
        if (form === Form.nested && textEnd > textStart && isOpening(view.getUint8(textStart))) return false;
        if (name === 'phase') this.isRun = isRunPhase(textStart, textEnd);
        sink.endText();
        return true;
      }
      case OPEN:
      case OPEN_LIST: {
        const length = form === Form.nested ? this.json.valueEnd(at, this.limit) - at : -1;
        if (length < 0) return false;
        sink.json(at, length, this.limit);
        this.at = at + length;
        return true;
      }
      case 0x74:
        if (!this.passes(TRUE)) return false;
        sink.bool(1);
        return true;
      case 0x66:
        if (!this.passes(FALSE)) return false;
        sink.bool(0);
        return true;
      default: {
        const value = form === Form.enum || form === Form.int64 ? -1 : this.integer();
        if (value >= 0) sink.integer(value);
        return value >= 0;
      }
    }
  }

  /** Reads a text up to its closing quote, where it goes on then. */
  private text(field: number): boolean {
    const end = this.sink.text(field, this.at, this.limit);
    this.at = end;
    return end >= 0;
  }
}

function isRunPhase(start: number, end: number): boolean {
  return end - start === RUN_PHASE.length && isSame(RUN_PHASE.at, start, end - start);
}
