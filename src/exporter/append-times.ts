/** A part of a record log, and when it came. */
interface Stretch {
  readonly offset: number;
  endOffset: number;
  readonly fromMs: number;
  toMs: number;
}

/** Parts kept for a run; when there are more, each two are taken together. */
const MAX_STRETCHES = 64;
/** Appends within this time make one part, in milliseconds. */
const STRETCH_MS = 1_000;

/** When the parts of a run's record log came, roughly, in few numbers. Times are monotonic milliseconds. */
export class AppendTimes {
  private stretches: Stretch[] = [];

  get isEmpty(): boolean {
    return this.stretches.length === 0;
  }

  /** All before `endOffset` that did not come earlier came between two times, which are one where only one is given. */
  note(endOffset: number, fromMs: number, toMs = fromMs): void {
    const last = this.stretches.at(-1);
    if (last !== undefined && (fromMs - last.fromMs < STRETCH_MS || endOffset <= last.endOffset)) {
      last.endOffset = Math.max(last.endOffset, endOffset);
      last.toMs = Math.max(last.toMs, toMs);
      return;
    }
    this.stretches.push({ offset: last?.endOffset ?? 0, endOffset, fromMs, toMs });
    if (this.stretches.length > MAX_STRETCHES) this.stretches = halved(this.stretches);
  }

  /** When the byte at `offset` came, at the earliest; `undefined` when nothing is known of it. */
  at(offset: number): number | undefined {
    return this.stretches.findLast((stretch) => stretch.offset <= offset)?.fromMs;
  }

  /** The end of what surely came at or before `atMs`. */
  before(atMs: number): number {
    return this.stretches.findLast((stretch) => stretch.toMs <= atMs)?.endOffset ?? 0;
  }
}

function halved(stretches: readonly Stretch[]): Stretch[] {
  const merged: Stretch[] = [];
  for (let index = 0; index < stretches.length; index += 2) {
    const [first, second] = [stretches[index], stretches[index + 1]];
    if (first === undefined) break;
    merged.push(second === undefined ? first : { ...first, endOffset: second.endOffset, toMs: second.toMs });
  }
  return merged;
}
