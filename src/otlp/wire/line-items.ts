import { bytes, copyText, MAX_RECORD_BYTES, putVarint, type Range, varintSize, view } from '../../record/arena.js';
import { Field, type LineSink } from './line-scanner.js';
import { UnescapedText } from './line-text.js';

/** Bytes behind a text that copying it may read. */
const COPIED_AT_ONCE = 16;

/** Writes items on the wire, as lines of the record log say them: `ItemCells` reads the cells of both. */
export class ItemSink implements LineSink {
  readonly isWhole = false;
  textStart = 0;
  textEnd = 0;
  /** Where the item begins. */
  start = 0;
  /** Where its next byte is written to; in the end, its end. */
  to = 0;
  private isLog = false;
  private hasMessage = false;
  private trace: Int32Array = new Int32Array(4);
  /** Where the key ends of the attribute that is written. */
  private keyEnd = 0;
  private readonly unescaped = new UnescapedText();

  begin(isLog: boolean, to: number): void {
    this.isLog = isLog;
    this.start = this.to = to;
    this.hasMessage = false;
  }

  traceId(words: Int32Array): void {
    this.trace = words;
    this.putTrace(this.isLog ? 0x4a : 0x0a);
  }

  id(field: number, high: number, low: number): void {
    this.putId(field === Field.parentId ? 0x22 : this.isLog ? 0x52 : 0x12, high, low);
  }

  link(high: number, low: number): void {
    view.setUint16(this.to, 0x6a1c);
    this.to += 2;
    this.putTrace(0x0a);
    this.putId(0x12, high, low);
  }

  time(field: number, high: number, low: number): void {
    const { to } = this;
    view.setUint8(to, field === Field.logTime ? 0x09 : field === Field.startTime ? 0x39 : 0x41);
    view.setInt32(to + 1, low, true);
    view.setInt32(to + 5, high, true);
    this.to = to + 9;
  }

  text(field: number, from: number, limit: number): number {
    switch (field) {
      case Field.body:
        return this.framedTwice(0x2a, 0x0a, 0, from, limit);
      case Field.message:
        this.hasMessage = true;
        // Its code comes behind it.
        return this.framedTwice(0x7a, 0x12, 2, from, limit);
      case Field.severity:
        return this.framed(0x1a, from, limit);
      default:
        return this.framed(field === Field.event ? 0x62 : 0x2a, from, limit);
    }
  }

  aside(from: number, limit: number): number {
    return this.unescape(this.to, from, limit);
  }

  severity(number: number): void {
    view.setUint16(this.to, 0x1000 | number);
    this.to += 2;
  }

  status(code: number): void {
    if (!this.hasMessage) {
      view.setUint16(this.to, 0x7a02);
      this.to += 2;
    }
    view.setUint16(this.to, 0x1800 | code);
    this.to += 2;
  }

  key(key: Range): void {
    const { to } = this;
    // Lengths of one byte are enough but for long texts: such names have at most 100.
    view.setUint8(to, this.isLog ? 0x32 : 0x4a);
    view.setUint16(to + 2, 0x0a00 | key.length);
    this.keyEnd = copyText(to + 4, key.at, key.length);
    view.setUint8(this.keyEnd, 0x12);
  }

  value(from: number, limit: number): number {
    return this.unescape(this.keyEnd + 4, from, limit);
  }

  /** The text was written four bytes behind its key, as if all lengths had one byte: where one has more, all behind it moves. */
  endText(): void {
    const { to, keyEnd, textStart, textEnd } = this;
    const length = textEnd - textStart;
    const valueLength = 1 + varintSize(length) + length;
    const keyLength = keyEnd - to - 2;
    const all = keyLength + 1 + varintSize(valueLength) + valueLength;
    const content = to + 1 + varintSize(all);
    const moved = content + all - length;
    if (moved !== textStart) {
      bytes.copyWithin(moved, textStart, textEnd);
      bytes.copyWithin(content, to + 2, keyEnd);
      view.setUint8(content + keyLength, 0x12);
    }
    putVarint(to + 1, all);
    view.setUint8(putVarint(content + keyLength + 1, valueLength), 0x0a);
    putVarint(moved - varintSize(length), length);
    this.to = moved + length;
  }

  json(from: number, length: number, limit: number): void {
    const start = this.keyEnd + 4;
    if (from + length + COPIED_AT_ONCE > limit) bytes.copyWithin(start, from, from + length);
    else copyText(start, from, length);
    this.textStart = start;
    this.textEnd = start + length;
    this.endText();
  }

  integer(value: number): void {
    this.endNumber(0x18, value);
  }

  bool(value: number): void {
    this.endNumber(0x10, value);
  }

  end(): boolean {
    return this.to - this.start <= MAX_RECORD_BYTES;
  }

  private putTrace(tag: number): void {
    const { to, trace } = this;
    view.setUint16(to, (tag << 8) | 16);
    for (let word = 0; word < trace.length; word++) view.setInt32(to + 2 + 4 * word, trace[word] as number);
    this.to = to + 18;
  }

  private putId(tag: number, high: number, low: number): void {
    const { to } = this;
    view.setUint16(to, (tag << 8) | 8);
    view.setInt32(to + 2, high);
    view.setInt32(to + 6, low);
    this.to = to + 10;
  }

  private endNumber(tag: number, value: number): void {
    const { to, keyEnd } = this;
    view.setUint8(keyEnd + 2, tag);
    const end = putVarint(keyEnd + 3, value);
    view.setUint8(keyEnd + 1, end - keyEnd - 2);
    view.setUint8(to + 1, end - to - 2);
    this.to = end;
  }

  /** Reads a text and writes it as a field. */
  private framed(tag: number, from: number, limit: number): number {
    const { to } = this;
    const quote = this.unescape(to + 2, from, limit);
    const length = this.textEnd - this.textStart;
    const start = to + 1 + varintSize(length);
    this.moveText(start);
    view.setUint8(to, tag);
    putVarint(to + 1, length);
    this.to = start + length;
    return quote;
  }

  /** The same as a field of a message that is a field, and has so many bytes more behind it. */
  private framedTwice(outer: number, inner: number, more: number, from: number, limit: number): number {
    const { to } = this;
    const quote = this.unescape(to + 4, from, limit);
    const length = this.textEnd - this.textStart;
    const all = 1 + varintSize(length) + length + more;
    const start = to + 2 + varintSize(all) + varintSize(length);
    this.moveText(start);
    view.setUint8(to, outer);
    view.setUint8(putVarint(to + 1, all), inner);
    putVarint(start - varintSize(length), length);
    this.to = start + length;
    return quote;
  }

  private moveText(start: number): void {
    const { textStart, textEnd } = this;
    if (start !== textStart) bytes.copyWithin(start, textStart, textEnd);
    this.textStart = start;
    this.textEnd = start + textEnd - textStart;
  }

  /** @returns where the closing quote stands; -1 for none, and the text is empty then */
  private unescape(to: number, from: number, limit: number): number {
    const { unescaped } = this;
    const end = unescaped.write(from, limit, to);
    this.textStart = to;
    this.textEnd = end < 0 ? to : end;
    return end < 0 ? -1 : unescaped.textEnd;
  }
}
