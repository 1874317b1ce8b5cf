/**
 * What was made of texts, for those that come again. Bounded by the texts' length: of two generations the older one goes
 * when the younger is full, and with it what was not asked for since.
 */
export class TextCache<V> {
  private young = new Map<string, V>();
  private old = new Map<string, V>();
  private youngLength = 0;

  /** @param maxLength of all texts of a generation, in UTF-16 units. @param maxTextLength longer texts are not remembered. */
  constructor(
    private readonly maxLength: number,
    private readonly maxTextLength: number,
  ) {}

  get(text: string): V | undefined {
    const found = this.young.get(text);
    if (found !== undefined) return found;
    const older = this.old.get(text);
    if (older !== undefined) this.set(text, older);
    return older;
  }

  /** @param text in memory of its own, see `ownText`. */
  set(text: string, value: V): void {
    if (text.length > this.maxTextLength) return;
    if (this.youngLength + text.length > this.maxLength) {
      this.old = this.young;
      this.young = new Map();
      this.youngLength = 0;
    }
    this.young.set(text, value);
    // A text costs more than its characters.
    this.youngLength += text.length + ENTRY_LENGTH;
  }
}

/** About what an entry costs, in UTF-16 units. */
const ENTRY_LENGTH = 64;
