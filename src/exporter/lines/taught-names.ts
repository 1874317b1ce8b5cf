import { MAX_TEXTS, type TextTable } from './text-table.js';

const MIN_SIZE = 1024;

/** Which texts of a table a run was taught as names. */
export class TaughtNames {
  /** 1 for each that was, by their numbers. */
  private marks = new Uint8Array(MIN_SIZE);
  private forgottenCount = 0;

  constructor(private readonly texts: TextTable) {}

  /** Whether the text that the table gave last was not marked before; marks it. */
  isNew(): boolean {
    const { index, forgottenCount } = this.texts;
    if (index < 0) return true;
    if (forgottenCount !== this.forgottenCount) {
      this.forgottenCount = forgottenCount;
      this.marks.fill(0);
    }
    if (index >= this.marks.length) this.grow(index);
    if (this.marks[index] === 1) return false;
    this.marks[index] = 1;
    return true;
  }

  private grow(index: number): void {
    const { marks } = this;
    this.marks = new Uint8Array(Math.min(MAX_TEXTS, 2 * Math.max(index, marks.length)));
    this.marks.set(marks);
  }
}
