import type { WordList } from './known-names.js';
import { TextCache } from './text-cache.js';

/** Makes a text safe to show: what comes out depends on the text, and on which of the words that it asks for are known. */
export type Sanitize = (text: string, names: WordList) => string;

/** Words that a text asked for: by `has`, and by `hasOutsideQuotes`. */
export interface AskedWords {
  readonly anywhere: readonly string[];
  readonly outsideQuotes: readonly string[];
}

/** What was made of a text, and on what that depends. */
export interface SharedText {
  readonly shown: string;
  /** Words that were asked for and not known, and such as were. */
  readonly hidden: AskedWords;
  readonly kept: AskedWords;
}

/** All texts of a generation, and the longest one, in UTF-16 units. */
const MAX_LENGTH = 512 * 1024;
const MAX_TEXT_LENGTH = 2048;

/**
 * What runs made of texts, for the runs that come after: a project's runs say much the same. Each way of making texts safe
 * has its own, so that none shows what another one allows.
 */
export class SharedProse {
  private readonly texts = new Map<Sanitize, TextCache<SharedText>>();

  of(sanitize: Sanitize): TextCache<SharedText> {
    let texts = this.texts.get(sanitize);
    if (texts === undefined) {
      texts = new TextCache(MAX_LENGTH, MAX_TEXT_LENGTH);
      this.texts.set(sanitize, texts);
    }
    return texts;
  }
}
