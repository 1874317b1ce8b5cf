import { ownText } from '../../record/own-text.js';
import { isLearnable, type KnownNames, type WordList } from './known-names.js';
import type { AskedWords, Sanitize, SharedText, SharedTexts } from './shared-texts.js';
import { TextCache } from './text-cache.js';

/** A text as it is shown, and what that depends on. */
interface ShownText {
  readonly shown: string;
  /** Words that were not known: the text is shown otherwise once one of them is. */
  readonly hidden: AskedWords;
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
    shared: SharedTexts,
  ) {
    this.others = shared.prose(sanitize);
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
    return this.knowsAny(found.hidden) || !this.knowsAll(found.kept) ? undefined : found;
  }

  private read(text: string): SharedText {
    const words = listenTo(this.names);
    const shown = this.sanitize(text, words);
    const read = { shown, hidden: words.hidden, kept: words.kept };
    this.others.set(text, read);
    return read;
  }

  /** Whether it would be shown the same way now. */
  private isCurrent(text: ShownText): boolean {
    const { size } = this.names;
    if (text.knownCount === size) return true;
    if (this.knowsAny(text.hidden)) return false;
    text.knownCount = size;
    return true;
  }

  private knowsAny({ anywhere, outsideQuotes }: AskedWords): boolean {
    for (const word of anywhere) if (this.names.has(word)) return true;
    for (const word of outsideQuotes) if (this.names.hasOutsideQuotes(word)) return true;
    return false;
  }

  private knowsAll({ anywhere, outsideQuotes }: AskedWords): boolean {
    for (const word of anywhere) if (!this.names.has(word)) return false;
    for (const word of outsideQuotes) if (!this.names.hasOutsideQuotes(word)) return false;
    return true;
  }
}

/** A run's names, and which words were asked for, known and not known. */
function listenTo(names: KnownNames): WordList & Omit<SharedText, 'shown'> {
  const hidden = asked();
  const kept = asked();
  return {
    hidden,
    kept,
    has: (word) => {
      const isKnown = names.has(word);
      if (isKnown) kept.anywhere.push(word);
      else if (isLearnable(word)) hidden.anywhere.push(word);
      return isKnown;
    },
    hasOutsideQuotes: (word) => {
      const isKnown = names.hasOutsideQuotes(word);
      if (isKnown) kept.outsideQuotes.push(word);
      else if (isLearnable(word)) hidden.outsideQuotes.push(word);
      return isKnown;
    },
  };
}

function asked(): { anywhere: string[]; outsideQuotes: string[] } {
  return { anywhere: [], outsideQuotes: [] };
}
