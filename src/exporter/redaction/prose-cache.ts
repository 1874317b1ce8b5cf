import { ownText } from '../../record/own-text.js';
import { isLearnable, type KnownNames, type WordList } from './known-names.js';
import { TextCache } from './text-cache.js';

/** A text as it is shown, and what that depends on. */
export interface ShownText {
  readonly shown: string;
  /** Words that were not known: the text is shown otherwise once one of them is. */
  readonly hidden: readonly string[];
  /** How many words were known when that was last checked. */
  knownCount: number;
}

/** All texts of a generation, in UTF-16 units; a run's messages and notes repeat a few hundred. */
const MAX_LENGTH = 512 * 1024;
const MAX_TEXT_LENGTH = 2048;

/**
 * Remembers how texts are shown. What is remembered is what would be made again: names are only ever learned, so a text
 * changes only when a word that was hidden in it becomes known.
 */
export class ProseCache {
  private readonly texts = new TextCache<ShownText>(MAX_LENGTH, MAX_TEXT_LENGTH);

  constructor(
    private readonly names: KnownNames,
    private readonly sanitize: (text: string, words: WordList) => string,
  ) {}

  /** @param isOwn the text is in memory of its own, see `ownText`. */
  show(text: string, isOwn = false): ShownText {
    const found = this.texts.get(text);
    if (found !== undefined && this.isCurrent(found)) return found;
    const words = new ListeningWords(this.names);
    const own = isOwn ? text : ownText(text);
    const shown = { shown: this.sanitize(own, words), hidden: words.hidden, knownCount: this.names.size };
    this.texts.set(own, shown);
    return shown;
  }

  /** Whether it would be shown the same way now. */
  isCurrent(text: ShownText): boolean {
    const { size } = this.names;
    if (text.knownCount === size) return true;
    for (const word of text.hidden) if (this.names.has(word)) return false;
    text.knownCount = size;
    return true;
  }
}

/** Takes down which words were asked for and not known. */
class ListeningWords implements WordList {
  readonly hidden: string[] = [];

  constructor(private readonly names: KnownNames) {}

  has(word: string): boolean {
    if (this.names.has(word)) return true;
    if (isLearnable(word)) this.hidden.push(word);
    return false;
  }
}
