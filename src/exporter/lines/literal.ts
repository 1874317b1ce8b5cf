/** Bytes that a line is compared with, four at a time: most of a line's bytes are keys that stand where they are expected. */
export class Literal {
  readonly length: number;
  private readonly words: Int32Array;

  /** @param text ASCII, at least four characters. */
  constructor(readonly text: string) {
    const bytes = Buffer.from(text, 'latin1');
    if (bytes.length < WORD_BYTES) throw new Error(`${text} is too short to be compared by words`);
    this.length = bytes.length;
    this.words = new Int32Array(Math.ceil(bytes.length / WORD_BYTES));
    // The last word overlaps the one before where the length is no multiple.
    for (let word = 0; word < this.words.length; word++) {
      this.words[word] = bytes.readInt32LE(Math.min(word * WORD_BYTES, bytes.length - WORD_BYTES));
    }
  }

  /** Whether these bytes stand at `at`, all before `end`. */
  isAt(view: DataView, at: number, end: number): boolean {
    if (at + this.length > end) return false;
    const { words } = this;
    const last = words.length - 1;
    for (let word = 0; word < last; word++) {
      if (view.getInt32(at + word * WORD_BYTES, true) !== words[word]) return false;
    }
    return view.getInt32(at + this.length - WORD_BYTES, true) === words[last];
  }
}

const WORD_BYTES = 4;
