import { ownText } from '../record/own-text.js';
import { isLearnable, type KnownNames, type WordList } from './known-names.js';
import type { RedactionLevel } from './redaction-policy.js';
import type { SqlDialect } from './sanitize-sql.js';
import { TextCache } from './text-cache.js';

/** A text as it is shown, and what that depends on. */
interface ShownText {
  readonly shown: string;
  /** Words that were not known: the text is shown otherwise once one of them is. */
  readonly hidden: AskedWords;
  /** How many words were known when that was last checked. */
  knownCount: number;
}

/** All texts of a generation, and the longest one, in UTF-16 units; a run's messages and notes repeat a few hundred. */
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

/** A statement as it may be exported. */
export interface ExportedSql {
  /** The statement, redacted as the level says; `undefined` when no SQL may be shown. */
  readonly text: string | undefined;
  /** SHA-256 of the whole statement in hex where no text is shown. */
  readonly sha256: string | undefined;
  readonly operation: string | undefined;
  /** What it is in a few words; no more than its verb where no text is shown. */
  readonly summary: string | undefined;
  /** The one relation that it is about, where it may be shown. */
  readonly collection: string | undefined;
}

/** What was made of a statement. */
export interface SharedStatement {
  readonly sql: ExportedSql;
  /** What a run learns from it. */
  readonly identifiers: readonly string[];
}

/** Of statements: those of a run of some thousand nodes. */
const MAX_STATEMENTS_LENGTH = 2 * 1024 * 1024;
const MAX_STATEMENT_LENGTH = 16_384;

/**
 * What the runs of a destination made of texts, for those that come after: a project's runs say much the same, and run the
 * same statements. Each way of making texts safe has its own, so that none shows what another one allows.
 */
export class SharedTexts {
  private readonly proseBy = new Map<Sanitize, TextCache<SharedText>>();
  private readonly statementsBy = new Map<RedactionLevel, Map<SqlDialect, TextCache<SharedStatement>>>();

  prose(sanitize: Sanitize): TextCache<SharedText> {
    let texts = this.proseBy.get(sanitize);
    if (texts === undefined) {
      texts = new TextCache(MAX_LENGTH, MAX_TEXT_LENGTH);
      this.proseBy.set(sanitize, texts);
    }
    return texts;
  }

  statements(level: RedactionLevel, dialect: SqlDialect): TextCache<SharedStatement> {
    let ofLevel = this.statementsBy.get(level);
    if (ofLevel === undefined) {
      ofLevel = new Map();
      this.statementsBy.set(level, ofLevel);
    }
    let statements = ofLevel.get(dialect);
    if (statements === undefined) {
      statements = new TextCache(MAX_STATEMENTS_LENGTH, MAX_STATEMENT_LENGTH);
      ofLevel.set(dialect, statements);
    }
    return statements;
  }
}
