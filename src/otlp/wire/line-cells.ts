import { putVarint, view } from '../../record/arena.js';
import { Attribute, attributeAt, Cell, cell, clearHeader, setCell, Value } from '../../record/cells.js';
import type { KeyStep } from './layouts.js';
import { Field, type LineSink } from './line-scanner.js';
import { UnescapedText } from './line-text.js';

/** Bytes behind a text that copying it may read. */
const COPIED_AT_ONCE = 16;

/**
 * Makes the cells of a record straight from its line. Texts stand where they stand in the line, unless they have escapes: who copies them may
 * read `SLACK` bytes behind it. Items and the places of attributes in them there are not. A start has an end of zeros.
 */
export class CellSink implements LineSink {
  readonly isWhole = true;
  textStart = 0;
  textEnd = 0;
  /** Where the next byte is written to of what does not stand in the line so. */
  to = 0;
  private isLog = false;
  private attributeCount = 0;
  private readonly unescaped = new UnescapedText();

  begin(isLog: boolean, to: number): void {
    clearHeader();
    this.isLog = isLog;
    this.to = to;
    this.attributeCount = 0;
  }

  traceId(words: Int32Array): void {
    const { to } = this;
    for (let word = 0; word < words.length; word++) view.setInt32(to + 4 * word, words[word] as number);
    setCell(Cell.traceId, to);
    this.to = to + 4 * words.length;
  }

  id(field: number, high: number, low: number): void {
    setCell(field === Field.ownId ? Cell.idHigh : Cell.parentHigh, high);
    setCell(field === Field.ownId ? Cell.idLow : Cell.parentLow, low);
  }

  link(high: number, low: number): void {
    setCell(Cell.linkHigh, high);
    setCell(Cell.linkLow, low);
  }

  time(field: number, high: number, low: number): void {
    if (field !== Field.endTime) {
      setCell(Cell.startHigh, high);
      setCell(Cell.startLow, low);
    }
    if (field !== Field.startTime) {
      setCell(Cell.endHigh, high);
      setCell(Cell.endLow, low);
    }
  }

  text(field: number, from: number, limit: number): number {
    const quote = this.read(from, limit);
    if (field === Field.name || field === Field.body) {
      setCell(Cell.textStart, this.textStart);
      setCell(Cell.textEnd, this.textEnd);
    } else if (field === Field.severity || field === Field.message) {
      setCell(Cell.messageStart, this.textStart);
      setCell(Cell.messageEnd, this.textEnd);
    }
    return quote;
  }

  aside(from: number, limit: number): number {
    return this.read(from, limit);
  }

  severity(number: number): void {
    setCell(Cell.code, number);
  }

  status(code: number): void {
    setCell(Cell.code, code);
  }

  key(): void {}

  value(from: number, limit: number): number {
    return this.read(from, limit);
  }

  endText(): void {
    this.endValue(Value.text, this.textStart, this.textEnd);
  }

  json(from: number, length: number): void {
    this.endValue(Value.text, from, from + length);
  }

  integer(value: number): void {
    const { to } = this;
    this.to = putVarint(to, value);
    this.endValue(Value.integer, to, this.to);
  }

  bool(value: number): void {
    view.setUint8(this.to, value);
    this.to += 1;
    this.endValue(Value.bool, this.to - 1, this.to);
  }

  end({ layout }: KeyStep): boolean {
    setCell(Cell.layout, layout.number);
    setCell(Cell.attributeCount, this.attributeCount);
    // A log record without a severity's text is none of the engine's.
    return layout.isUsual && !(this.isLog && cell(Cell.messageStart) === cell(Cell.messageEnd));
  }

  private endValue(kind: number, start: number, end: number): void {
    const at = attributeAt(this.attributeCount);
    setCell(at + Attribute.valueStart, start);
    setCell(at + Attribute.valueEnd, end);
    setCell(at + Attribute.kind, kind);
    setCell(at + Attribute.start, 0);
    setCell(at + Attribute.text, 0);
    this.attributeCount += 1;
  }

  private read(from: number, limit: number): number {
    const { unescaped, to } = this;
    const quote = unescaped.endAsItIs(from, limit);
    if (quote >= 0) {
      this.textStart = from;
      this.textEnd = quote;
      return quote;
    }
    const end = unescaped.write(from, limit, to);
    if (end < 0) return -1;
    this.textStart = to;
    this.textEnd = end;
    this.to = end + COPIED_AT_ONCE;
    return unescaped.textEnd;
  }
}
