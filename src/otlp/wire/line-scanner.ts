import {
  bytes,
  constant,
  copyText,
  isSame,
  MAX_RECORD_BYTES,
  putVarint,
  type Range,
  REGION,
  varintSize,
  view,
} from '../../record/arena.js';
import { MAX_ATTRIBUTES } from '../../record/cells.js';
import { CLOSE, COMMA, isOpening, JsonChecker, OPEN, OPEN_LIST, QUOTE } from '../../record/json-line.js';
import { ENUM_FIELDS } from '../attribute-schema.js';
import { type AttributeLayout, type EventLayout, Form, type KeyStep, type Layouts } from './layouts.js';
import { HEX, nineDigits, UnescapedText } from './line-text.js';
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
/** Bytes behind a text that copying it may read. */
const COPIED_AT_ONCE = 16;
/** Where the texts stand that a log record's item has no place for. */
const NAMES = REGION.scratch;
const NANOS_A_SECOND = 1e9;
const MAX_SEVERITY = 24;
const MAX_KEY_BYTES = 127;
/** What the bytes of a varint can hold that `ItemCells` reads as a value. */
const MAX_INTEGER = 2 ** 28 - 1;
const MAX_INTEGER_DIGITS = 9;

/** 1 for what names of attributes are made of. */
const NAME_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => (/[\w.-]/.test(String.fromCharCode(byte)) ? 1 : 0));
NAME_BYTES.fill(0, 0x80);

/**
 * Makes of a line of the record log the item on the wire that it came from, so that `ItemCells` reads the cells of both: after a
 * restart, and for a destination that lags behind. It takes nothing for granted: where `ItemCells` reads the item that it made of
 * a SpanEnd or a log record, `LineWriter` writes that very line of it, but for the name of a log record's span, which OTLP does not carry.
 */
export class LineScanner {
  /** Of the item that was written last: where it begins and ends in the arena. */
  start = 0;
  end = 0;
  /** The halves of the id of the span whose start or end the line was, so that a start whose end follows directly can be passed over. */
  idHigh = 0;
  idLow = 0;
  /** Of a span's line: where its links stand, its time of start, and whether its severity is that of a phase in which a node is run. */
  linksAt = 0;
  startTimeAt = 0;
  isInfo = false;
  /** Where the first attribute begins, at the brace, and behind that where each ends, at its comma or brace. */
  readonly places = new Int32Array(MAX_ATTRIBUTES + 1);
  /** Texts that a log record's line has and the wire has not: the name of its span, and the event's id. They begin at 0 where there is none. */
  spanNameStart = 0;
  spanNameEnd = 0;
  eventIdStart = 0;
  eventIdEnd = 0;
  /** What is read next, and where the line ends at the latest. */
  private at = 0;
  private limit = 0;
  /** Where the item's next byte is written to. */
  private to = 0;
  /** Whether it is the phase of an evaluated node in which it is run, as its attribute says. */
  private isRun = false;
  private readonly json = new JsonChecker(ENUM_FIELDS);
  private readonly unescaped = new UnescapedText();

  /**
   * @param layouts those of the `ItemCells` that reads the items
   * @param isWhole whether all is wanted that lines have and the wire has not: starts, which become spans without an end, and `spanNameStart` and so on
   */
  constructor(
    private readonly layouts: Layouts,
    private readonly isWhole = false,
  ) {}

  /**
   * Writes the item of the line that begins at `start` in the arena (its line break stands before `limit`) to place `to`. It reads
   * nothing from `limit` on, and writes at most 4 KiB more than the line has. Of a start nothing is looked at behind its id, unless all is wanted.
   * @returns what it is, one of `LineKind`
   */
  scan(start: number, limit: number, to: number): number {
    this.at = start;
    this.limit = Math.min(limit, start + MAX_RECORD_BYTES);
    this.to = this.start = this.end = to;
    if (this.passes(END_HEAD)) return this.span(true) && this.endsHere() ? LineKind.span : LineKind.other;
    if (this.passes(START_HEAD)) {
      const isStart = this.isWhole ? this.span(false) && this.endsHere() : this.startHead();
      return isStart ? LineKind.start : LineKind.other;
    }
    if (this.passes(LOG_HEAD)) return this.log() && this.endsHere() ? LineKind.log : LineKind.other;
    return LineKind.other;
  }

  private startHead(): boolean {
    return this.traceId(0x0a) && this.passes(SPAN_ID) && this.ownId(0x12) && this.passes(SPAN_NAME);
  }

  private span(hasEnded: boolean): boolean {
    if (!this.startHead()) return false;
    const nameStart = this.framed(0x2a);
    const event = nameStart < 0 ? undefined : this.layouts.ofSpan(nameStart, this.to);
    if (event === undefined) return false;
    if (!this.passes(NO_PARENT) && !(this.passes(PARENT) && this.id(0x22) && this.passes(LINKS))) return false;
    this.linksAt = this.at;
    if (!this.passes(NULL) && !this.link()) return false;
    if (!this.passes(START_TIME)) return false;
    this.startTimeAt = this.at;
    if (!this.time(0x39) || (hasEnded && !(this.passes(END_TIME) && this.time(0x41)))) return false;
    this.isInfo = event.isEvaluated && this.passes(event.infoSeverity);
    if (!this.isInfo && !this.passes(event.usualSeverity)) return false;
    if ((hasEnded && !(this.passes(STATUS) && this.status())) || !this.passes(event.typeHead)) return false;
    return this.attributes(event, 0x4a) && this.isInfo === (event.isEvaluated && this.isRun);
  }

  private log(): boolean {
    if (!this.traceId(0x4a) || !this.passes(SPAN_ID) || !this.ownId(0x52) || !this.passes(LOG_SPAN_NAME)) return false;
    this.spanNameStart = this.eventIdStart = 0;
    if (!this.passes(NULL) && !this.passesName()) return false;
    if (!this.passes(EVENT_ID) && !(this.isWhole && this.passesEventId())) return false;
    if (!this.time(0x09)) return false;
    if (!this.passes(SEVERITY_NUMBER) || !this.severityNumber()) return false;
    if (!this.passes(SEVERITY_TEXT) || this.framed(0x1a) < 0) return false;
    if (!this.passes(BODY) || !this.framedTwice(0x2a, 0x0a, 0) || !this.passes(EVENT_TYPE)) return false;
    const typeStart = this.framed(0x62);
    const event = typeStart < 0 ? undefined : this.layouts.ofLog(typeStart, this.to);
    return event !== undefined && this.passes(ATTRIBUTES) && this.attributes(event, 0x32);
  }

  /** The record's own brace and the line's break. */
  private endsHere(): boolean {
    this.end = this.to;
    return this.byte(0) === CLOSE && this.byte(1) === LINE_BREAK && this.end - this.start <= MAX_RECORD_BYTES;
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
    if (this.byte(0) !== QUOTE) return false;
    this.at += 1;
    this.spanNameStart = this.isWhole ? NAMES : this.to;
    this.spanNameEnd = this.text(this.spanNameStart);
    this.at += 1;
    return this.spanNameEnd >= 0;
  }

  private passesEventId(): boolean {
    if (!this.passes(OWN_EVENT_ID)) return false;
    this.eventIdStart = Math.max(NAMES, this.spanNameEnd + COPIED_AT_ONCE);
    this.eventIdEnd = this.text(this.eventIdStart);
    return this.eventIdEnd >= 0 && this.passes(TIME);
  }

  private traceId(tag: number): boolean {
    view.setUint16(this.to, (tag << 8) | 16);
    this.to += 2;
    return this.hexWord() && this.hexWord() && this.hexWord() && this.hexWord();
  }

  private ownId(tag: number): boolean {
    if (!this.id(tag)) return false;
    this.idHigh = view.getInt32(this.to - 8);
    this.idLow = view.getInt32(this.to - 4);
    return true;
  }

  /** A span's id, which has a bit that is set. */
  private id(tag: number): boolean {
    view.setUint16(this.to, (tag << 8) | 8);
    this.to += 2;
    return this.hexWord() && this.hexWord() && (view.getInt32(this.to - 8) | view.getInt32(this.to - 4)) !== 0;
  }

  /** Four bytes in hexadecimal digits. */
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
    view.setInt32(this.to, word);
    this.to += 4;
    this.at = at + 8;
    return invalid >= 0;
  }

  /** The only link, to another span, without attributes. */
  private link(): boolean {
    if (!this.passes(LINK_HEAD)) return false;
    view.setUint16(this.to, 0x6a1c);
    this.to += 2;
    return this.traceId(0x0a) && this.passes(SPAN_ID) && this.id(0x12) && this.passes(LINK_TAIL);
  }

  /** A time of our days, whose seconds have ten digits. */
  private time(tag: number): boolean {
    const { at, to } = this;
    if (at + 19 > this.limit || view.getUint8(at) === ZERO) return false;
    const tenSeconds = nineDigits(at);
    const second = view.getUint8(at + 9) - ZERO;
    const nanos = nineDigits(at + 10);
    if (tenSeconds < 0 || second >>> 0 > 9 || nanos < 0) return false;
    const seconds = tenSeconds * 10 + second;
    // 64 bits, as two numbers that are exact: the upper one in units of 2^16.
    const lower = (seconds % 0x1_0000) * NANOS_A_SECOND + nanos;
    const upper = Math.floor(seconds / 0x1_0000) * NANOS_A_SECOND;
    const low = lower + (upper % 0x1_0000) * 0x1_0000;
    view.setUint8(to, tag);
    view.setUint32(to + 1, low % 0x1_0000_0000, true);
    view.setUint32(to + 5, Math.floor(upper / 0x1_0000) + Math.floor(low / 0x1_0000_0000), true);
    this.to = to + 9;
    this.at = at + 19;
    return true;
  }

  private severityNumber(): boolean {
    const number = this.integer();
    if (number < 1 || number > MAX_SEVERITY) return false;
    view.setUint16(this.to, 0x1000 | number);
    this.to += 2;
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
    const { to } = this;
    const isSilent = this.passes(NULL);
    if (isSilent) {
      view.setUint16(to, 0x7a02);
      this.to += 2;
    } else {
      if (this.byte(0) !== QUOTE || this.byte(1) === QUOTE) return false;
      this.at += 1;
      if (!this.framedTwice(0x7a, 0x12, 2)) return false;
      this.at += 1;
    }
    // No message and the code 0 are no status.
    for (let code = isSilent ? 1 : 0; code < CODES.length; code++) {
      if (!this.passes(CODES[code] as Range)) continue;
      view.setUint16(this.to, 0x1800 | code);
      this.to += 2;
      return true;
    }
    return false;
  }

  private attributes(event: EventLayout, tag: number): boolean {
    const { places } = this;
    this.isRun = false;
    places[0] = this.at;
    if (this.byte(0) !== OPEN) return false;
    if (this.byte(1) === CLOSE) {
      this.at += 2;
      return true;
    }
    let step: KeyStep | undefined = event.first;
    for (let count = 0; count < MAX_ATTRIBUTES; count++) {
      step = this.key(step);
      if (step?.attribute === undefined || !this.attribute(step.attribute, tag)) return false;
      places[count + 1] = this.at;
      const next = this.byte(0);
      if (next === CLOSE) {
        this.at += 1;
        return true;
      }
      if (next !== COMMA) return false;
    }
    return false;
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

  private attribute(attribute: AttributeLayout, tag: number): boolean {
    const { key, form, isSuspect, name } = attribute;
    if (isSuspect) return false;
    const { to } = this;
    // Lengths of one byte are enough but for long texts: such names have at most 100.
    view.setUint8(to, tag);
    view.setUint16(to + 2, 0x0a00 | key.length);
    const keyEnd = copyText(to + 4, key.at, key.length);
    view.setUint8(keyEnd, 0x12);
    const start = keyEnd + 4;
    switch (this.byte(0)) {
      case QUOTE: {
        this.at += 1;
        const end = this.text(start);
        if (end < 0) return false;
        this.at += 1;
        if (form === Form.enum && attribute.valueAt(start, end) === undefined) return false;
        if (form === Form.nested && end > start && isOpening(view.getUint8(start))) return false;
        if (name === 'phase') this.isRun = end - start === RUN_PHASE.length && isSame(RUN_PHASE.at, start, end - start);
        this.endText(keyEnd, end);
        return true;
      }
      case OPEN:
      case OPEN_LIST: {
        const { at } = this;
        const length = form === Form.nested ? this.json.valueEnd(at, this.limit) - at : -1;
        if (length < 0) return false;
        this.copy(start, length);
        this.endText(keyEnd, start + length);
        return true;
      }
      case 0x74:
        return this.passes(TRUE) && this.endNumber(keyEnd, 0x10, 1);
      case 0x66:
        return this.passes(FALSE) && this.endNumber(keyEnd, 0x10, 0);
      default: {
        const value = form === Form.enum || form === Form.int64 ? -1 : this.integer();
        return value >= 0 && this.endNumber(keyEnd, 0x18, value);
      }
    }
  }

  /** Ends an attribute whose value is a number, and stands behind its key. */
  private endNumber(keyEnd: number, tag: number, value: number): boolean {
    const { to } = this;
    view.setUint8(keyEnd + 2, tag);
    const end = putVarint(keyEnd + 3, value);
    view.setUint8(keyEnd + 1, end - keyEnd - 2);
    view.setUint8(to + 1, end - to - 2);
    this.to = end;
    return true;
  }

  /** Ends an attribute whose text was written four bytes behind its key, as if all lengths had one byte: where one has more, all behind it moves. */
  private endText(keyEnd: number, textEnd: number): void {
    const { to } = this;
    const start = keyEnd + 4;
    const length = textEnd - start;
    const valueLength = 1 + varintSize(length) + length;
    const keyLength = keyEnd - to - 2;
    const all = keyLength + 1 + varintSize(valueLength) + valueLength;
    const content = to + 1 + varintSize(all);
    const moved = content + all - length;
    if (moved !== start) {
      bytes.copyWithin(moved, start, textEnd);
      bytes.copyWithin(content, to + 2, keyEnd);
      view.setUint8(content + keyLength, 0x12);
    }
    putVarint(to + 1, all);
    view.setUint8(putVarint(content + keyLength + 1, valueLength), 0x0a);
    putVarint(moved - varintSize(length), length);
    this.to = moved + length;
  }

  /** Reads a text up to its closing quote, and writes it as a field. @returns where it begins in the item; -1 where it is none */
  private framed(tag: number): number {
    const { to } = this;
    const end = this.text(to + 2);
    if (end < 0) return -1;
    const length = end - to - 2;
    const start = to + 1 + varintSize(length);
    if (start !== to + 2) bytes.copyWithin(start, to + 2, end);
    view.setUint8(to, tag);
    putVarint(to + 1, length);
    this.to = start + length;
    return start;
  }

  /** The same as a field of a message that is a field, and has so many bytes more behind it. @returns whether it is a text */
  private framedTwice(outer: number, inner: number, more: number): boolean {
    const { to } = this;
    const end = this.text(to + 4);
    if (end < 0) return false;
    const length = end - to - 4;
    const all = 1 + varintSize(length) + length + more;
    const start = to + 2 + varintSize(all) + varintSize(length);
    if (start !== to + 4) bytes.copyWithin(start, to + 4, end);
    view.setUint8(to, outer);
    view.setUint8(putVarint(to + 1, all), inner);
    putVarint(start - varintSize(length), length);
    this.to = start + length;
    return true;
  }

  /** Copies what stands here as it is. */
  private copy(to: number, length: number): void {
    const { at } = this;
    if (at + length + COPIED_AT_ONCE > this.limit) bytes.copyWithin(to, at, at + length);
    else copyText(to, at, length);
    this.at = at + length;
  }

  /** Writes the text that begins here, behind its quote, up to the closing one, where it goes on then. @returns as `UnescapedText` */
  private text(to: number): number {
    const end = this.unescaped.write(this.at, this.limit, to);
    this.at = this.unescaped.textEnd;
    return end;
  }
}
