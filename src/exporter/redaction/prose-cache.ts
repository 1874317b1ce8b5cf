import { ownText } from '../../record/own-text.js';
import { isLearnable, type KnownNames, type WordList } from './known-names.js';
import type { Sanitize, SharedProse, SharedText } from './shared-prose.js';
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

  private readonly others: TextCache<SharedText>;

  /** @param shared what was made of texts by other runs, which may know other names. */
  constructor(
    private readonly names: KnownNames,
    private readonly sanitize: Sanitize,
    shared: SharedProse,
  ) {
    this.others = shared.of(sanitize);
  }

  /** @param isOwn the text is in memory of its own, see `ownText`. */
  show(text: string, isOwn = false): ShownText {
    const found = this.texts.get(text);
    if (found !== undefined && this.isCurrent(found)) return found;
    const own = isOwn ? text : ownText(text);
    const { shown, hidden } = this.fromOthers(own) ?? this.read(own);
    const mine = { shown, hidden, knownCount: this.names.size };
    this.texts.set(own, mine);
    return mine;
  }

  /** What another run made of the text, where this run would make the same of it. */
  private fromOthers(text: string): SharedText | undefined {
    const found = this.others.get(text);
    if (found === undefined) return undefined;
    for (const word of found.hidden) if (this.names.has(word)) return undefined;
    for (const word of found.kept) if (!this.names.has(word)) return undefined;
    return found;
  }

  private read(text: string): SharedText {
    const words = listenTo(this.names);
    const shown = this.sanitize(text, words);
    const read = { shown, hidden: words.hidden, kept: words.kept };
    this.others.set(text, read);
    return read;
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

/** A run's names, and which words were asked for, known and not known. */
function listenTo(names: KnownNames): WordList & Omit<SharedText, 'shown'> {
  const hidden: string[] = [];
  const kept: string[] = [];
  return {
    hidden,
    kept,
    has: (word) => {
      const isKnown = names.has(word);
      if (isKnown) kept.push(word);
      else if (isLearnable(word)) hidden.push(word);
      return isKnown;
    },
  };
}
