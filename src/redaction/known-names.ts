import { ownText } from '../record/attributes.js';
import type { RedactionLevel } from './redaction-policy.js';
import type { SqlDialect } from './sanitize-sql.js';

/** Most words that are remembered; later names are then unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;
/** Most identifiers of statements that are remembered beside them, and the longest one: no database has longer names. */
export const MAX_IDENTIFIERS = 50_000;
const MAX_IDENTIFIER_LENGTH = 300;

/** Words that a text may show beside those of the vocabulary. */
export interface WordList {
  /** Whether it may stand anywhere, in quotes too. */
  has(word: string): boolean;
  /** Whether it may stand outside of quotes, where values seldom are. */
  hasOutsideQuotes(word: string): boolean;
}

/**
 * Names of a run's own things (nodes, files, relations), learned from structural attributes that are exported anyway.
 * Texts may show them. Identifiers of its statements (columns, functions) count outside of quotes only: a value in quotes
 * may well be spelled like a column.
 */
export class KnownNames implements WordList {
  private readonly words = new Set<string>();
  private readonly identifiers = new Set<string>();
  /** Names that were learned lately: each record of a node brings the same few. */
  private readonly lately = new TextCache<true>(LATELY_LENGTH, MAX_LATELY_LENGTH);

  /** How many words are known; it only grows, so a text that was read at the same size reads the same. */
  get size(): number {
    return this.words.size + this.identifiers.size;
  }

  /** Learns a name's words, for example all of `model.shop.orders` or `models/marts/orders.sql`. */
  learn(name: string): void {
    if (this.words.size >= MAX_KNOWN_WORDS || this.lately.get(name) !== undefined) return;
    const own = ownText(name);
    this.lately.set(own, true);
    this.learnOwn(own);
  }

  /** As `learn`, of a name that is not likely to have come before. @param name in memory of its own, see `ownText`. */
  learnOwn(name: string): void {
    if (this.words.size >= MAX_KNOWN_WORDS || this.words.has(name)) return;
    for (let end = 0, start = wordStart(name, 0); start < name.length; start = wordStart(name, end)) {
      end = wordEnd(name, start);
      const word = name.slice(start, end);
      if (!this.words.has(word) && isLearnable(word)) this.words.add(word);
    }
  }

  /** Learns an identifier of a statement. */
  learnIdentifier(word: string): void {
    if (this.identifiers.size >= MAX_IDENTIFIERS || word.length > MAX_IDENTIFIER_LENGTH) return;
    if (!this.identifiers.has(word)) this.identifiers.add(ownText(word));
  }

  has(word: string): boolean {
    return this.words.has(word);
  }

  hasOutsideQuotes(word: string): boolean {
    return this.words.has(word) || this.identifiers.has(word);
  }
}

/** Whether a word can become known: numbers never do. */
export function isLearnable(word: string): boolean {
  const first = word.charCodeAt(0);
  return (first >= LOWER_A && first <= LOWER_Z) || !NUMBER.test(word);
}

const NUMBER = /^[\p{N}_$]+$/u;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;
const LATELY_LENGTH = 512 * 1024;
const MAX_LATELY_LENGTH = 512;

/**
 * Where the first word from an offset on begins; the text's length where there is none. A word is a stretch of letters,
 * digits, marks, `_` and `$`. Read by hand, as a pattern makes an object for each word, which costs more than finding it.
 * @param from no offset inside of a word
 */
export function wordStart(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

/** Where the word that begins at an offset ends: the offset of the first character that is not of it. */
export function wordEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < ASCII_CODES ? IS_ASCII_WORD[code] === 1 : WORD_CHAR.test(text.slice(at, at + unitsAt(text, at)));
}

/** One, or two for a character beyond the first 65,536. */
function unitsAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < FIRST_SURROGATE || code > LAST_SURROGATE) return 1;
  return (text.codePointAt(at) ?? 0) > LAST_SINGLE_UNIT ? 2 : 1;
}

const WORD_CHAR = /^[\p{L}\p{N}\p{M}_$]$/u;
const ASCII_CODES = 0x80;
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
const LAST_SINGLE_UNIT = 0xffff;
/** 1 at the code of each ASCII character that words have. */
const IS_ASCII_WORD = Uint8Array.from({ length: ASCII_CODES }, (_, code) =>
  WORD_CHAR.test(String.fromCharCode(code)) ? 1 : 0,
);

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
