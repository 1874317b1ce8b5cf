/** A place in a record log, and when it was written: everything before it is older. */
interface Mark {
  readonly offset: number;
  readonly atMs: number;
}

/** Marks kept for a run; when there are more, every second one goes. */
const MAX_MARKS = 64;
/** Appends that come closer together than this share a mark, in milliseconds. */
const MARK_EVERY_MS = 1_000;

/** When the parts of a run's record log came, roughly, in few numbers. Times are monotonic milliseconds. */
export class AppendTimes {
  private marks: Mark[] = [];
  /** When the last of it came; `undefined` when nothing is known. */
  lastMs: number | undefined;

  /** Bytes from `offset` on came at `atMs`. */
  note(offset: number, atMs: number): void {
    this.lastMs = atMs;
    const last = this.marks.at(-1);
    if (last !== undefined && (offset <= last.offset || atMs - last.atMs < MARK_EVERY_MS)) return;
    this.marks.push({ offset, atMs });
    // The first stays: it says since when the run is known.
    if (this.marks.length > MAX_MARKS) this.marks = this.marks.filter((_, index) => index % 2 === 0);
  }

  /** When the byte at `offset` came, at the earliest; `undefined` when nothing is known of it. */
  at(offset: number): number | undefined {
    return this.marks.findLast((mark) => mark.offset <= offset)?.atMs;
  }

  /** The end of what surely came before `atMs`. */
  before(atMs: number): number {
    return this.marks.findLast((mark) => mark.atMs <= atMs)?.offset ?? 0;
  }
}
