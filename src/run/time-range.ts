import { Cell, cell } from '../record/cells.js';
import type { UnixNano } from '../record/telemetry-record.js';

const HALF = 2 ** 32;

/** The first and the last time of records, in halves: a number of 64 bits is an object, and most records move neither. */
export class TimeRange {
  private startHigh = Number.POSITIVE_INFINITY;
  private startLow = 0;
  private endHigh = Number.NEGATIVE_INFINITY;
  private endLow = 0;

  get start(): UnixNano | null {
    return this.startHigh === Number.POSITIVE_INFINITY ? null : nanosOf(this.startHigh, this.startLow);
  }

  get end(): UnixNano | null {
    return this.endHigh === Number.NEGATIVE_INFINITY ? null : nanosOf(this.endHigh, this.endLow);
  }

  /** Notes the times of the item that is looked at. After the clock was set back a span may end before its start; both are times of the range. */
  noteCells(): void {
    const high = cell(Cell.startHigh) >>> 0;
    const low = cell(Cell.startLow) >>> 0;
    const endHigh = cell(Cell.endHigh) >>> 0;
    const endLow = cell(Cell.endLow) >>> 0;
    this.noteStart(high, low);
    if (isAfter(endHigh, endLow, high, low)) this.noteEnd(endHigh, endLow);
    else this.noteEnd(high, low);
  }

  note(start: UnixNano, end: UnixNano): void {
    this.noteStart(highOf(start), lowOf(start));
    this.noteEnd(highOf(end), lowOf(end));
  }

  merge(other: TimeRange): void {
    if (other.startHigh === Number.POSITIVE_INFINITY) return;
    this.noteStart(other.startHigh, other.startLow);
    this.noteEnd(other.endHigh, other.endLow);
  }

  private noteStart(high: number, low: number): void {
    if (!isAfter(this.startHigh, this.startLow, high, low)) return;
    this.startHigh = high;
    this.startLow = low;
  }

  private noteEnd(high: number, low: number): void {
    if (!isAfter(high, low, this.endHigh, this.endLow)) return;
    this.endHigh = high;
    this.endLow = low;
  }
}

function isAfter(high: number, low: number, thanHigh: number, thanLow: number): boolean {
  return high > thanHigh || (high === thanHigh && low > thanLow);
}

function highOf(nanos: UnixNano): number {
  return Number(nanos / BigInt(HALF));
}

function lowOf(nanos: UnixNano): number {
  return Number(nanos % BigInt(HALF));
}

function nanosOf(high: number, low: number): UnixNano {
  return BigInt(high) * BigInt(HALF) + BigInt(low);
}
