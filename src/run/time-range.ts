import { Cell, cell } from '../record/cells.js';
import type { UnixNano } from '../record/telemetry-record.js';

/** The first and the last time of records, in halves as cells have them: a number of 64 bits is an object, and most records move neither. */
export class TimeRange {
  private startHigh = 0x7fff_ffff;
  private startLow = -1;
  /** Less than 0 while there is none: no time has so many bits. */
  private endHigh = -1;
  private endLow = 0;

  get start(): UnixNano | null {
    return this.endHigh < 0 ? null : nanosOf(this.startHigh, this.startLow);
  }

  get end(): UnixNano | null {
    return this.endHigh < 0 ? null : nanosOf(this.endHigh, this.endLow);
  }

  /** Notes the times of the item that is looked at. After the clock was set back a span may end before its start; both are times of the range. */
  noteCells(): void {
    const high = cell(Cell.startHigh);
    const low = cell(Cell.startLow);
    const endHigh = cell(Cell.endHigh);
    const endLow = cell(Cell.endLow);
    this.noteStart(high, low);
    if (isAfter(endHigh, endLow, high, low)) this.noteEnd(endHigh, endLow);
    else this.noteEnd(high, low);
  }

  note(start: UnixNano, end: UnixNano): void {
    this.noteStart(highOf(start), lowOf(start));
    this.noteEnd(highOf(end), lowOf(end));
  }

  merge(other: TimeRange): void {
    if (other.endHigh < 0) return;
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

/** Compares times in halves. */
export function isAfter(high: number, low: number, thanHigh: number, thanLow: number): boolean {
  return high > thanHigh || (high === thanHigh && low >>> 0 > thanLow >>> 0);
}

/** Returns the halves of a time, as integers of 32 bits with a sign: without one, half of them would be stored as objects. */
export function highOf(nanos: UnixNano): number {
  return Number(nanos >> 32n);
}

export function lowOf(nanos: UnixNano): number {
  return Number(BigInt.asIntN(32, nanos));
}

export function nanosOf(high: number, low: number): UnixNano {
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}
