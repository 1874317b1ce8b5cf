import { isSame, type Range, view } from '../../record/arena.js';
import { CLOSE, COMMA, OPEN } from '../../record/json-line.js';
import type { Layout, Stretch } from './layouts.js';
import type { LineScanner, LineSink } from './line-scanner.js';
import { END_HEAD, NULL, SPAN_ID, START_HEAD, START_TIME } from './line-writer.js';

const LINE_BREAK = 0x0a;
/** A trace id, and a span's id behind it. */
const IDS_LENGTH = 32 + SPAN_ID.length + 16;
const TIME_LENGTH = 19;

/** Whether the line at a place in the arena begins as a span's start does, and the one at another as the end of that span. */
export function isStartBefore(start: number, end: number, limit: number): boolean {
  if (end + END_HEAD.length + IDS_LENGTH > limit) return false;
  if (!isSame(START_HEAD.at, start, START_HEAD.length) || !isSame(END_HEAD.at, end, END_HEAD.length)) return false;
  return isSame(start + START_HEAD.length, end + END_HEAD.length, IDS_LENGTH);
}

/** Tells whether a start is the one that `LineWriter` writes of its end: then all that it says stands in the end's cells. */
export class StartLines {
  /** What the start has of the end's attributes, see `Layout.stretches`. */
  stretches: readonly Stretch[] = [];
  /** Where its attributes stand in its line, and where they end. */
  attributesAt = 0;
  attributesEnd = 0;
  private at = 0;

  /** @param scanner has read the end, which has cells; @param start where the line of the start begins; @param end where that of the end does */
  isStartOf(scanner: LineScanner<LineSink>, layout: Layout, start: number, end: number): boolean {
    const { event } = layout;
    const headStart = end + END_HEAD.length;
    this.at = start;
    this.stretches = layout.stretches();
    return (
      this.passes(START_HEAD) &&
      this.passesSame(headStart, scanner.linksAt - headStart) &&
      this.passes(NULL) &&
      this.passes(START_TIME) &&
      this.passesSame(scanner.startTimeAt, TIME_LENGTH) &&
      this.passes(scanner.isInfo ? event.infoSeverity : event.usualSeverity) &&
      this.passes(event.typeHead) &&
      this.attributes(layout, scanner.offsets)
    );
  }

  private attributes(layout: Layout, offsets: Int32Array): boolean {
    this.attributesAt = this.at;
    for (const { isShared, from, to } of this.stretches) {
      if (isShared) {
        const offset = offsets[from] as number;
        if (!this.passesMember(offset, (offsets[to] as number) - offset)) return false;
      } else {
        for (let index = from; index < to; index++) {
          const atStart = layout.attributes[index]?.atStart;
          if (atStart !== undefined && !this.passesMember(atStart.at, atStart.length)) return false;
        }
      }
    }
    if (this.at === this.attributesAt && !this.passesByte(OPEN)) return false;
    this.attributesEnd = this.at + 1;
    return this.passesByte(CLOSE) && this.passesByte(CLOSE) && view.getUint8(this.at) === LINE_BREAK;
  }

  /** Passes names and values with what stands before the first of them. */
  private passesMember(from: number, length: number): boolean {
    return this.passesByte(this.at === this.attributesAt ? OPEN : COMMA) && this.passesSame(from + 1, length - 1);
  }

  private passesByte(byte: number): boolean {
    return view.getUint8(this.at++) === byte;
  }

  private passes({ at, length }: Range): boolean {
    return this.passesSame(at, length);
  }

  /** By doubles: what is no number is not equal to itself, and counts as another. Lines have no NUL, of which zeros are made. */
  private passesSame(from: number, length: number): boolean {
    const { at } = this;
    const last = length - 8;
    let done = 0;
    for (; done <= last; done += 8) {
      if (view.getFloat64(from + done, true) !== view.getFloat64(at + done, true)) return false;
    }
    this.at = at + length;
    return isSame(from + done, at + done, length - done);
  }
}
