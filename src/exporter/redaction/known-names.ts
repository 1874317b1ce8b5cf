/** Most words that are remembered; later names are then unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;

/**
 * Names of a run's own things (nodes, files, relations), learned from structural attributes that are exported anyway.
 * Texts may show them.
 */
export class KnownNames {
  private readonly words = new Set<string>();

  /** Learns a name's words, for example all of `model.shop.orders` or `models/marts/orders.sql`. */
  learn(name: string): void {
    if (this.words.size >= MAX_KNOWN_WORDS || this.words.has(name)) return;
    for (const [word] of name.matchAll(WORD)) {
      if (!NUMBER.test(word)) this.words.add(word);
    }
  }

  has(word: string): boolean {
    return this.words.has(word);
  }
}

/** What counts as one word, in names as in texts. */
export const WORD = /[\p{L}\p{N}\p{M}_$]+/gu;
const NUMBER = /^[\p{N}_$]+$/u;
