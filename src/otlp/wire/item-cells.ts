import { isSame, MAX_RECORD_BYTES, view } from '../../record/arena.js';
import {
  ATTRIBUTE_CELLS,
  Attribute,
  Cell,
  cell,
  clearHeader,
  HEADER,
  MAX_ATTRIBUTES,
  setCell,
  Value,
} from '../../record/cells.js';
import type { EventLayout, KeyStep, Layouts } from './layouts.js';

/**
 * Reads spans and log records of OTLP from the arena into cells. Makes neither text nor object of them. What looks otherwise than
 * nearly all of the engine's is not read: plain code does.
 */
export class ItemCells {
  /** Behind the length that was read last. */
  private at = 0;
  private attributeCount = 0;

  constructor(private readonly layouts: Layouts) {}

  /** @returns whether it is such a span */
  readSpan(start: number, end: number): boolean {
    if (end - start > MAX_RECORD_BYTES) return false;
    this.begin(start, end);
    let step: KeyStep | undefined;
    for (let at = start; at < end; ) {
      const tag = view.getUint8(at++);
      switch (tag) {
        case 0x0a: // trace_id
          if (view.getUint8(at) !== 16 || cell(Cell.traceId) !== 0) return false;
          setCell(Cell.traceId, at + 1);
          at += 17;
          break;
        case 0x12: // span_id
          if (view.getUint8(at) !== 8) return false;
          setCell(Cell.idHigh, view.getInt32(at + 1));
          setCell(Cell.idLow, view.getInt32(at + 5));
          at += 9;
          break;
        case 0x22: // parent_span_id
          if (view.getUint8(at) === 8) {
            setCell(Cell.parentHigh, view.getInt32(at + 1));
            setCell(Cell.parentLow, view.getInt32(at + 5));
          } else if (view.getUint8(at) !== 0 || (cell(Cell.parentHigh) | cell(Cell.parentLow)) !== 0) return false;
          at += 1 + view.getUint8(at);
          break;
        case 0x2a: {
          // name: its type says what the attributes are, which come behind it
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0 || step !== undefined) return false;
          setCell(Cell.textStart, this.at);
          setCell(Cell.textEnd, fieldEnd);
          step = this.layouts.ofSpan(this.at, fieldEnd)?.first;
          if (step === undefined) return false;
          at = fieldEnd;
          break;
        }
        case 0x39: // start_time_unix_nano
          setCell(Cell.startLow, view.getInt32(at, true));
          setCell(Cell.startHigh, view.getInt32(at + 4, true));
          at += 8;
          break;
        case 0x41: // end_time_unix_nano
          setCell(Cell.endLow, view.getInt32(at, true));
          setCell(Cell.endHigh, view.getInt32(at + 4, true));
          at += 8;
          break;
        case 0x4a: {
          // attributes
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0 || step === undefined) return false;
          step = this.readAttribute(step, at - 1, this.at, fieldEnd);
          if (step === undefined) return false;
          at = fieldEnd;
          break;
        }
        case 0x6a: {
          // links
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0 || !this.readLink(this.at, fieldEnd)) return false;
          at = fieldEnd;
          break;
        }
        case 0x7a: {
          // status
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0 || !this.readStatus(this.at, fieldEnd)) return false;
          at = fieldEnd;
          break;
        }
        case 0x85: // flags, with a tag of two bytes
          if (view.getUint8(at) !== 0x01) return false;
          at += 5;
          break;
        case 0x30: // kind, and numbers of what was dropped
        case 0x50:
        case 0x60:
        case 0x70:
          if (view.getUint8(at) > 0x7f) return false;
          at += 1;
          break;
        default:
          // Events, trace state, and what nobody knows.
          return false;
      }
      if (at > end) return false;
    }
    if (step === undefined || !hasTraceId() || (cell(Cell.idHigh) | cell(Cell.idLow)) === 0) return false;
    if ((cell(Cell.startHigh) | cell(Cell.endHigh)) < 0) return false;
    return this.finish(step);
  }

  /** @returns whether it is such a log record, of a span */
  readLog(start: number, end: number): boolean {
    if (end - start > MAX_RECORD_BYTES) return false;
    this.begin(start, end);
    let attributesStart = 0;
    let attributesEnd = 0;
    let event: EventLayout | undefined;
    for (let at = start; at < end; ) {
      const tag = view.getUint8(at++);
      switch (tag) {
        case 0x09: // time_unix_nano
          setCell(Cell.startLow, view.getInt32(at, true));
          setCell(Cell.startHigh, view.getInt32(at + 4, true));
          at += 8;
          break;
        case 0x59: // observed_time_unix_nano
          at += 8;
          break;
        case 0x10: // severity_number
          if (view.getUint8(at) > 24) return false;
          setCell(Cell.code, view.getUint8(at++));
          break;
        case 0x1a: {
          // severity_text
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0) return false;
          setCell(Cell.messageStart, this.at);
          setCell(Cell.messageEnd, fieldEnd);
          at = fieldEnd;
          break;
        }
        case 0x2a: {
          // body: a text, or nothing
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0 || cell(Cell.textEnd) !== 0) return false;
          setCell(Cell.textStart, fieldEnd);
          setCell(Cell.textEnd, fieldEnd);
          if (this.at < fieldEnd) {
            if (view.getUint8(this.at) !== 0x0a || this.lengthEnd(this.at + 1, fieldEnd) !== fieldEnd) return false;
            setCell(Cell.textStart, this.at);
          }
          at = fieldEnd;
          break;
        }
        case 0x32: {
          // attributes: read once the event's name is known, which comes behind them
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0) return false;
          if (attributesStart === 0) attributesStart = at - 1;
          else if (attributesEnd !== at - 1) return false;
          attributesEnd = at = fieldEnd;
          break;
        }
        case 0x38: // dropped_attributes_count
          if (view.getUint8(at) > 0x7f) return false;
          at += 1;
          break;
        case 0x45: // flags
          at += 4;
          break;
        case 0x4a: // trace_id
          if (view.getUint8(at) !== 16 || cell(Cell.traceId) !== 0) return false;
          setCell(Cell.traceId, at + 1);
          at += 17;
          break;
        case 0x52: // span_id
          if (view.getUint8(at) !== 8) return false;
          setCell(Cell.idHigh, view.getInt32(at + 1));
          setCell(Cell.idLow, view.getInt32(at + 5));
          at += 9;
          break;
        case 0x62: {
          // event_name
          const fieldEnd = this.lengthEnd(at, end);
          if (fieldEnd < 0) return false;
          event = this.layouts.ofLog(this.at, fieldEnd);
          at = fieldEnd;
          break;
        }
        default:
          return false;
      }
      if (at > end) return false;
    }
    const isTimed = (cell(Cell.startLow) | cell(Cell.startHigh)) !== 0 && cell(Cell.startHigh) >= 0;
    const isSevere = cell(Cell.code) !== 0 && cell(Cell.messageEnd) > cell(Cell.messageStart);
    if (event === undefined || !isTimed || !isSevere || !hasTraceId()) return false;
    if ((cell(Cell.idHigh) | cell(Cell.idLow)) === 0) return false;
    setCell(Cell.endLow, cell(Cell.startLow));
    setCell(Cell.endHigh, cell(Cell.startHigh));
    let step: KeyStep | undefined = event.first;
    for (let at = attributesStart; at < attributesEnd; ) {
      const fieldEnd = this.lengthEnd(at + 1, attributesEnd);
      step = fieldEnd < 0 ? undefined : this.readAttribute(step, at, this.at, fieldEnd);
      if (step === undefined) return false;
      at = fieldEnd;
    }
    return this.finish(step);
  }

  private begin(start: number, end: number): void {
    clearHeader();
    setCell(Cell.itemStart, start);
    setCell(Cell.itemEnd, end);
    this.attributeCount = 0;
  }

  private finish({ layout }: KeyStep): boolean {
    setCell(Cell.layout, layout.number);
    setCell(Cell.attributeCount, this.attributeCount);
    return layout.isUsual;
  }

  /**
   * @param field where its tag stands; @param start where what its length counts begins
   * @returns the step of its key; `undefined` where its value, or its shape, is not a usual one
   */
  private readAttribute(step: KeyStep, field: number, start: number, end: number): KeyStep | undefined {
    const keyLength = view.getUint8(start + 1);
    const key = start + 2;
    let at = key + keyLength;
    if (view.getUint8(start) !== 0x0a || keyLength > 0x7f || at >= end) return undefined;
    const found = step.follow(key, keyLength);
    if (found === undefined || this.attributeCount === MAX_ATTRIBUTES) return undefined;
    if (view.getUint8(at) !== 0x12 || this.lengthEnd(at + 1, end) !== end || this.at >= end) return undefined;
    at = this.at;
    const to = HEADER + this.attributeCount * ATTRIBUTE_CELLS;
    setCell(to + Attribute.start, field);
    setCell(to + Attribute.valueEnd, end);
    setCell(to + Attribute.text, 0);
    switch (view.getUint8(at)) {
      case 0x0a: // string_value
        if (this.lengthEnd(at + 1, end) !== end) return undefined;
        setCell(to + Attribute.valueStart, this.at);
        setCell(to + Attribute.kind, Value.text);
        break;
      case 0x10: // bool_value
        if (end - at !== 2 || view.getUint8(at + 1) > 1) return undefined;
        setCell(to + Attribute.valueStart, at + 1);
        setCell(to + Attribute.kind, Value.bool);
        break;
      case 0x18: // int_value, small and not negative
        if (end - at > 5 || !isVarint(at + 1, end)) return undefined;
        setCell(to + Attribute.valueStart, at + 1);
        setCell(to + Attribute.kind, Value.integer);
        break;
      default:
        return undefined;
    }
    this.attributeCount += 1;
    return found;
  }

  /** One link to a span of the same trace, without attributes, as the engine has it. */
  private readLink(start: number, end: number): boolean {
    // trace_id, span_id, then perhaps flags: nothing else.
    if (view.getUint8(start) !== 0x0a || view.getUint8(start + 1) !== 16) return false;
    if (view.getUint8(start + 18) !== 0x12 || view.getUint8(start + 19) !== 8) return false;
    const rest = end - start - 28;
    if (rest !== 0 && !(rest === 5 && view.getUint8(start + 28) === 0x35)) return false;
    if (cell(Cell.traceId) === 0 || !isSame(cell(Cell.traceId), start + 2, 16)) return false;
    if ((cell(Cell.linkHigh) | cell(Cell.linkLow)) !== 0) return false;
    setCell(Cell.linkHigh, view.getInt32(start + 20));
    setCell(Cell.linkLow, view.getInt32(start + 24));
    return (cell(Cell.linkHigh) | cell(Cell.linkLow)) !== 0;
  }

  private readStatus(start: number, end: number): boolean {
    let at = start;
    if (at < end && view.getUint8(at) === 0x12) {
      const fieldEnd = this.lengthEnd(at + 1, end);
      if (fieldEnd < 0) return false;
      setCell(Cell.messageStart, this.at);
      setCell(Cell.messageEnd, fieldEnd);
      at = fieldEnd;
    }
    if (at < end && view.getUint8(at) === 0x18) {
      if (view.getUint8(at + 1) > 2) return false;
      setCell(Cell.code, view.getUint8(at + 1));
      at += 2;
    }
    return at === end;
  }

  /** The end of what has its length at a place, -1 beyond `end`; `this.at` is then where it begins. */
  private lengthEnd(start: number, end: number): number {
    let at = start;
    let byte = view.getUint8(at++);
    let value = byte & 0x7f;
    for (let shift = 7; byte > 0x7f; shift += 7) {
      if (shift === 28) return -1;
      byte = view.getUint8(at++);
      value |= (byte & 0x7f) << shift;
    }
    this.at = at;
    return at + value > end ? -1 : at + value;
  }
}

function hasTraceId(): boolean {
  const at = cell(Cell.traceId);
  if (at === 0) return false;
  return (view.getInt32(at) | view.getInt32(at + 4) | view.getInt32(at + 8) | view.getInt32(at + 12)) !== 0;
}

/** Whether all of a range is one varint. */
function isVarint(start: number, end: number): boolean {
  for (let at = start; at < end - 1; at++) if (view.getUint8(at) <= 0x7f) return false;
  return end > start && view.getUint8(end - 1) <= 0x7f;
}
