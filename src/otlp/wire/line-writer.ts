import { buffer, constant, copyText, putDecimal, putHex, putId, type Range, textAt, view } from '../../record/arena.js';
import { ATTRIBUTE_CELLS, Attribute, Cell, cell, HEADER, Value } from '../../record/cells.js';
import {
  BACKSLASH,
  CLOSE,
  COMMA,
  HIGHEST_BITS,
  isOpening,
  JsonChecker,
  OPEN,
  QUOTE,
  specials,
} from '../../record/json-line.js';
import { ENUM_FIELDS } from '../attribute-schema.js';
import { Form, type Layout, type Layouts, type Stretch } from './layouts.js';

// What stands between values: the scanner of lines (line-scanner.ts) reads what is written here.
export const START_HEAD = constant('{"record_type":"SpanStart","trace_id":"');
export const END_HEAD = constant('{"record_type":"SpanEnd","trace_id":"');
export const LOG_HEAD = constant('{"record_type":"LogRecord","trace_id":"');
export const SPAN_ID = constant('","span_id":"');
export const SPAN_NAME = constant('","span_name":"');
export const PARENT = constant('","parent_span_id":"');
export const NO_PARENT = constant('","parent_span_id":null,"links":');
export const LINKS = constant('","links":');
export const LINK_HEAD = constant('[{"trace_id":"');
export const LINK_TAIL = constant('","attributes":{}}]');
export const NULL = constant('null');
export const START_TIME = constant(',"start_time_unix_nano":"');
export const END_TIME = constant('","end_time_unix_nano":"');
export const STATUS = constant(',"status":');
export const MESSAGE = constant('{"message":');
export const CODES = [',"code":0}', ',"code":1}', ',"code":2}'].map(constant);
export const LOG_SPAN_NAME = constant('","span_name":');
export const EVENT_ID = constant(',"event_id":null,"time_unix_nano":"');
export const SEVERITY_NUMBER = constant('","severity_number":');
export const SEVERITY_TEXT = constant(',"severity_text":"');
export const BODY = constant('","body":"');
export const TRUE = constant('true');
export const FALSE = constant('false');

const LINE_BREAK = 0x0a;
/** Numbers of a layout's `codes` for each attribute: where its key stands, how long that is, its form. */
const CODE = { keyAt: 0, keyLength: 1, form: 2, count: 3 } as const;

/** Of a byte beyond ASCII; what is more is the letter of a short escape. */
export const NOT_ASCII = 2;
/** 0 for a byte that stands in a JSON string as it is, the letter of a short escape, 1 for a long escape, 2 for what is not ASCII. */
export const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 ? 1 : byte >= 0x80 ? NOT_ASCII : 0));
for (const [letter, byte] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13, '"': QUOTE, '\\': BACKSLASH })) {
  ESCAPES[byte] = letter.charCodeAt(0);
}
/** `\u00` behind a backslash. */
const LONG_ESCAPE = 0x30303075;

/** Writes records as lines of JSONL into the arena, byte for byte as the engine does, from their cells. */
export class LineWriter {
  /** Whether something turned out that the cells do not tell: then plain code has to make the record. */
  isUnusual = false;
  /** Where the SpanEnd begins, of the lines that were written last. */
  endLine = 0;
  /** Where the name of the span stands in them as JSON, with its quotes; of a log record `null` in its place. */
  nameStart = 0;
  nameEnd = 0;
  /** Where a log record's time stands. */
  timeStart = 0;
  timeEnd = 0;
  /** Where each stretch of the start's attributes stands, for the end to copy it. */
  private readonly stretches = new Int32Array(2 * 129);
  private readonly json = new JsonChecker(ENUM_FIELDS);

  constructor(private readonly layouts: Layouts) {}

  /** Writes a span's two lines. @returns the place behind them */
  span(start: number): number {
    this.isUnusual = false;
    const layout = this.layouts.layout(cell(Cell.layout));
    const { event } = layout;
    const stretches = layout.stretches();
    const severity = this.isInfo(layout) ? event.infoSeverity : event.usualSeverity;
    let to = put(start, START_HEAD);
    const head = to;
    to = this.head(to);
    const headEnd = to;
    to = put(to, NULL);
    to = put(to, START_TIME);
    const time = to;
    to = putDecimal(to, cell(Cell.startLow), cell(Cell.startHigh));
    const timeEnd = to;
    to = put(to, severity);
    to = put(to, event.typeHead);
    to = this.startAttributes(layout, stretches, to);
    to = putEnd(to);
    // The SpanEnd begins as the start does.
    this.endLine = to;
    to = put(to, END_HEAD);
    to = copyText(to, head, headEnd - head);
    to = putLink(to);
    to = put(to, START_TIME);
    to = copyText(to, time, timeEnd - time);
    to = put(to, END_TIME);
    to = putDecimal(to, cell(Cell.endLow), cell(Cell.endHigh));
    to = put(to, severity);
    to = this.status(to);
    to = put(to, event.typeHead);
    to = this.endAttributes(layout, stretches, to);
    return putEnd(to);
  }

  /** Writes a log record's line, with `null` for its span's name. @returns the place behind it */
  log(start: number): number {
    this.isUnusual = false;
    const layout = this.layouts.layout(cell(Cell.layout));
    let to = put(start, LOG_HEAD);
    to = putHex(to, cell(Cell.traceId), 16);
    to = put(to, SPAN_ID);
    to = putId(to, cell(Cell.idHigh), cell(Cell.idLow));
    to = put(to, LOG_SPAN_NAME);
    this.nameStart = to;
    to = put(to, NULL);
    this.nameEnd = to;
    to = put(to, EVENT_ID);
    this.timeStart = to;
    to = putDecimal(to, cell(Cell.startLow), cell(Cell.startHigh));
    this.timeEnd = to;
    to = put(to, SEVERITY_NUMBER);
    to = putInteger(to, cell(Cell.code));
    to = put(to, SEVERITY_TEXT);
    to = this.escaped(to, cell(Cell.messageStart), cell(Cell.messageEnd));
    to = put(to, BODY);
    to = this.escaped(to, cell(Cell.textStart), cell(Cell.textEnd));
    view.setUint8(to++, QUOTE);
    to = put(to, layout.event.typeHead);
    const begin = to;
    for (let index = 0; index < layout.attributes.length; index++) to = this.attribute(layout, index, to);
    return putEnd(closed(begin, to));
  }

  private head(start: number): number {
    let to = putHex(start, cell(Cell.traceId), 16);
    to = put(to, SPAN_ID);
    to = putId(to, cell(Cell.idHigh), cell(Cell.idLow));
    to = put(to, SPAN_NAME);
    this.nameStart = to - 1;
    to = this.escaped(to, cell(Cell.textStart), cell(Cell.textEnd));
    this.nameEnd = to + 1;
    if ((cell(Cell.parentHigh) | cell(Cell.parentLow)) === 0) return put(to, NO_PARENT);
    to = put(to, PARENT);
    to = putId(to, cell(Cell.parentHigh), cell(Cell.parentLow));
    return put(to, LINKS);
  }

  private status(start: number): number {
    let to = put(start, STATUS);
    const code = cell(Cell.code);
    const messageStart = cell(Cell.messageStart);
    const messageEnd = cell(Cell.messageEnd);
    if (code === 0 && messageStart === messageEnd) return put(to, NULL);
    to = put(to, MESSAGE);
    if (messageStart === messageEnd) to = put(to, NULL);
    else {
      view.setUint8(to, QUOTE);
      to = this.escaped(to + 1, messageStart, messageEnd);
      view.setUint8(to++, QUOTE);
    }
    return put(to, CODES[code] as Range);
  }

  private startAttributes(layout: Layout, stretches: readonly Stretch[], begin: number): number {
    let to = begin;
    for (let number = 0; number < stretches.length; number++) {
      const { isShared, from, to: end } = stretches[number] as Stretch;
      this.stretches[2 * number] = to;
      for (let index = from; index < end; index++) {
        if (isShared) to = this.attribute(layout, index, to);
        else {
          const atStart = layout.attributes[index]?.atStart;
          if (atStart !== undefined) to = put(to, atStart);
        }
      }
      this.stretches[2 * number + 1] = to;
    }
    return closed(begin, to);
  }

  private endAttributes(layout: Layout, stretches: readonly Stretch[], begin: number): number {
    let to = begin;
    for (let number = 0; number < stretches.length; number++) {
      const { isShared, from, to: end } = stretches[number] as Stretch;
      if (isShared) {
        const start = this.stretches[2 * number] as number;
        const copied = to;
        to = copyText(to, start, (this.stretches[2 * number + 1] as number) - start);
        // The first one of all stands behind a brace.
        if (to > copied) view.setUint8(copied, COMMA);
      } else for (let index = from; index < end; index++) to = this.attribute(layout, index, to);
    }
    return closed(begin, to);
  }

  /** Writes an attribute, a comma before it. */
  private attribute(layout: Layout, index: number, start: number): number {
    const { codes, attributes } = layout;
    const code = index * CODE.count;
    const form = codes[code + CODE.form] as number;
    const keyLength = codes[code + CODE.keyLength] as number;
    const from = HEADER + index * ATTRIBUTE_CELLS;
    const valueStart = cell(from + Attribute.valueStart);
    const valueEnd = cell(from + Attribute.valueEnd);
    copyText(start, codes[code + CODE.keyAt] as number, keyLength + 1);
    const to = start + keyLength;
    switch (cell(from + Attribute.kind)) {
      case Value.text:
        return this.text(attributes[index], form, to, valueStart, valueEnd);
      case Value.bool:
        return put(to, view.getUint8(valueStart) === 0 ? FALSE : TRUE);
      default:
        return this.integer(form, to, valueStart, valueEnd);
    }
  }

  private text(
    attribute: Layout['attributes'][number] | undefined,
    form: number,
    to: number,
    start: number,
    end: number,
  ): number {
    if (form === Form.enum) {
      const value = attribute?.valueAt(start, end);
      if (value !== undefined) return put(to, value.json);
      this.isUnusual = true;
    } else if (form === Form.nested && end > start) {
      if (isOpening(view.getUint8(start))) {
        if (this.json.isJson(start, end)) return copyText(to, start, end - start);
        this.isUnusual = true;
      }
    }
    // The key's constant ends in a quote.
    const behind = this.escaped(to + 1, start, end);
    view.setUint8(behind, QUOTE);
    return behind + 1;
  }

  private integer(form: number, to: number, start: number, end: number): number {
    // A number needs its name.
    if (form === Form.enum) this.isUnusual = true;
    let value = 0;
    for (let at = start, shift = 0; at < end; at++, shift += 7) value |= (view.getUint8(at) & 0x7f) << shift;
    if (form !== Form.int64) return putInteger(to, value);
    const behind = putInteger(to + 1, value);
    view.setUint8(behind, QUOTE);
    return behind + 1;
  }

  /** Writes UTF-8 as it stands within a JSON string. */
  private escaped(begin: number, start: number, end: number): number {
    let to = begin;
    for (let at = start; ; ) {
      for (; at + 8 <= end; at += 8, to += 8) {
        const four = view.getInt32(at, true);
        const next = view.getInt32(at + 4, true);
        if (((specials(four) | specials(next)) & HIGHEST_BITS) !== 0) break;
        view.setInt32(to, four, true);
        view.setInt32(to + 4, next, true);
      }
      while (at < end && ESCAPES[view.getUint8(at)] === 0) view.setUint8(to++, view.getUint8(at++));
      if (at === end) return to;
      const byte = view.getUint8(at++);
      const kind = ESCAPES[byte] as number;
      if (kind === NOT_ASCII) return this.notAscii(begin, start, end);
      view.setUint8(to++, BACKSLASH);
      if (kind > NOT_ASCII) view.setUint8(to++, kind);
      else {
        view.setInt32(to, LONG_ESCAPE, true);
        to = putHex(to + 3, at - 1, 1);
      }
    }
  }

  private notAscii(to: number, start: number, end: number): number {
    const text = textAt(start, end);
    // What is no UTF-8 becomes U+FFFD, as plain code has it.
    if (text.includes('\ufffd')) this.isUnusual = true;
    return to + buffer.write(JSON.stringify(text).slice(1, -1), to);
  }

  /** Whether it is the phase of an evaluated node in which it is run. */
  private isInfo(layout: Layout): boolean {
    return layout.phase >= 0 && layout.valueOf(layout.phase)?.name === 'EXECUTION_PHASE_RUN';
  }
}

function put(to: number, range: Range): number {
  return copyText(to, range.at, range.length);
}

/** Puts the braces round attributes, each of which has a comma before it. */
function closed(begin: number, end: number): number {
  view.setUint8(begin, OPEN);
  const to = Math.max(end, begin + 1);
  view.setUint8(to, CLOSE);
  return to + 1;
}

function putEnd(to: number): number {
  view.setUint8(to, CLOSE);
  view.setUint8(to + 1, LINE_BREAK);
  return to + 2;
}

function putLink(start: number): number {
  if ((cell(Cell.linkHigh) | cell(Cell.linkLow)) === 0) return put(start, NULL);
  let to = put(start, LINK_HEAD);
  to = putHex(to, cell(Cell.traceId), 16);
  to = put(to, SPAN_ID);
  to = putId(to, cell(Cell.linkHigh), cell(Cell.linkLow));
  return put(to, LINK_TAIL);
}

function putInteger(to: number, value: number): number {
  if (value >= 100) return to + buffer.write(String(value), to, 'latin1');
  const tens = Math.floor(value / 10);
  view.setUint8(to, 0x30 + (tens === 0 ? value : tens));
  view.setUint8(to + 1, 0x30 + value - 10 * tens);
  return to + (tens === 0 ? 1 : 2);
}
