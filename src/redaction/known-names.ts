import { grown } from '../core/bytes.js';
import { ownText } from '../record/attributes.js';
import { type AttributePolicy, EVENTS, POLICY_BY_KEY } from '../record/event-table.js';
import { type KnownText, texts } from '../record/texts.js';
import { eventName } from '../run/node-outcome.js';
import type { SqlDialect } from './sanitize-sql.js';
import { isLearnable } from './vocabulary.js';
import { currentWords, Flag, type FoundWords, type Words, wordsOf } from './words.js';

/**
 * How much SQL is exported. `literals` (default): statements stay readable, but their literals become `?` and their comments are removed. `statements`: no SQL at all, a hash instead. `off`:
 * everything as the engine sent it.
 */
export type RedactionLevel = 'literals' | 'statements' | 'off';

/**
 * The kind of reader of a text. `artifactReader`: a signed-in user who may read artifacts, which contain every text unredacted. `anybodyElse`: a telemetry destination, a webhook endpoint, a chat, a
 * mailbox, and callers without that right.
 */
export type TextReader = 'artifactReader' | 'anybodyElse';

/** Decides how much of a run's texts a reader sees; no other function does. @param setting `redaction`, of all or of the destination */
export function redactionFor(reader: TextReader, setting: RedactionLevel): RedactionLevel {
  return reader === 'artifactReader' ? 'off' : setting;
}

/** Returns the policy of an attribute by its exported key. An unknown attribute may contain anything, so it is `text`, or `ownWords` in events that this version's public schema does not have. */
export function attributePolicyOf(key: string, eventType: string): AttributePolicy {
  const known = POLICY_BY_KEY.get(key);
  if (known !== undefined) return known;
  if (key.startsWith('extra.')) return 'deny';
  return KNOWN_EVENTS.has(eventName(eventType)) ? 'text' : 'ownWords';
}

/** The events of the public schema, by the last part of their names. */
export const KNOWN_EVENTS: ReadonlySet<string> = new Set([...EVENTS.keys()].map(eventName));

/** The most words that are remembered; later names stay unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;
/** The most identifiers of statements that are remembered as well. */
export const MAX_IDENTIFIERS = 50_000;

/** Words that a text may show in addition to the vocabulary. */
export interface WordList {
  /** Whether a word may be shown anywhere, even in quotes. */
  has(word: string): boolean;
  /** Whether a word may be shown outside of quotes, where values are rare. */
  hasOutsideQuotes(word: string): boolean;
}

/** The names of a run as lists, in a form that can be stored. */
export interface NameLists {
  readonly words: readonly string[];
  readonly identifiers: readonly string[];
}

/**
 * The names of things in a run (nodes, files, relations), learned from structural attributes, which are exported anyway; texts may show them. Identifiers of statements (columns, functions) may be
 * shown outside of quotes only, since a quoted value may be spelled like a column. Each word of a shared table has bits here.
 */
export class KnownNames implements WordList {
  private words: Words | undefined;
  private bits = new Uint8Array(0);
  private nameCount = 0;
  private identifierCount = 0;
  /** The names learned most recently: each record of a node has the same few. */
  private readonly recent = new TextCache<true>(RECENT_LENGTH, MAX_RECENT_LENGTH);

  /** The number of known words. It never decreases, so a text is shown the same way as long as it stays the same. */
  get size(): number {
    return this.nameCount + this.identifierCount;
  }

  /** Learns the words of a name, for example of `model.shop.orders` or `models/marts/orders.sql`. */
  learn(name: string): void {
    if (this.nameCount >= MAX_KNOWN_WORDS || this.recent.get(name) !== undefined) return;
    this.recent.set(ownText(name), true);
    this.learnDirectly(name);
  }

  /** Like `learn`, without the cache: for a name that probably did not occur before. */
  learnDirectly(name: string): void {
    if (this.nameCount < MAX_KNOWN_WORDS) this.learnWords(wordsOf(name, this.table()));
  }

  /** Learns the words of a name that `wordsAt` found. */
  learnWords(name: FoundWords): void {
    if (this.nameCount >= MAX_KNOWN_WORDS) return;
    for (const word of name.numbers) if (this.mark(name.words, word, NAME)) this.nameCount += 1;
  }

  /** Learns an identifier of a statement. */
  learnIdentifier(word: string): void {
    const words = this.table();
    const number = this.identifierCount < MAX_IDENTIFIERS ? words.numberOf(word) : 0;
    if (number !== 0) this.learnIdentifiers({ words, numbers: [number] });
  }

  /** Learns identifiers of a statement. */
  learnIdentifiers({ words, numbers }: FoundWords): void {
    for (const word of numbers) {
      if (this.identifierCount >= MAX_IDENTIFIERS) return;
      const isLong = (words.flagsOf(word) & Flag.long) !== 0;
      if (!isLong && this.mark(words, word, IDENTIFIER)) this.identifierCount += 1;
    }
  }

  /** Returns all names. */
  lists(): NameLists {
    return { words: this.textsOf(NAME), identifiers: this.textsOf(IDENTIFIER) };
  }

  has(word: string): boolean {
    return (this.bitsOf(word) & NAME) !== 0;
  }

  hasOutsideQuotes(word: string): boolean {
    return this.bitsOf(word) !== 0;
  }

  /** Returns the table of this run: the one that was current when the run learned its first word. */
  private table(): Words {
    this.words ??= currentWords();
    return this.words;
  }

  private bitsOf(word: string): number {
    return this.words === undefined ? 0 : (this.bits[this.words.knownNumberOf(word)] ?? 0);
  }

  private textsOf(bit: number): readonly string[] {
    const { words } = this;
    const texts: string[] = [];
    for (const [word, bits] of this.bits.entries()) {
      if (words !== undefined && (bits & bit) !== 0) texts.push(words.textOf(word));
    }
    return texts;
  }

  /** Sets a bit of a word. @returns whether it was not set before */
  private mark(words: Words, number: number, bit: number): boolean {
    const table = this.table();
    const word = table.numberIn(words, number);
    if (word >= this.bits.length) this.bits = grown(this.bits, Math.max(FIRST_BITS, table.count + 1, word + 1));
    const bits = this.bits[word] ?? 0;
    if (word === 0 || (bits & bit) !== 0) return false;
    this.bits[word] = bits | bit;
    return true;
  }
}

/** The bits of a word. */
const NAME = 1;
const IDENTIFIER = 2;
const RECENT_LENGTH = 512 * 1024;
const MAX_RECENT_LENGTH = 512;

/** What a run may have learned from a text. */
export const Learned = { words: 1, identifiers: 2 } as const;

/** Records from which of the remembered texts a run has learned. */
export class LearnedTexts {
  private marks = new Uint8Array(0);
  private generation = 0;

  /** Marks a text as learned from. @returns whether it was not marked before; always true for a text that is not remembered. @param mark of `Learned` */
  isNew({ number }: KnownText, mark: number): boolean {
    if (this.generation !== texts.generation) {
      this.generation = texts.generation;
      this.marks.fill(0);
    }
    if (number < 0) return true;
    if (number >= this.marks.length) this.marks = grown(this.marks, Math.max(FIRST_BITS, number + 1));
    const marks = this.marks[number] ?? 0;
    if ((marks & mark) !== 0) return false;
    this.marks[number] = marks | mark;
    return true;
  }
}

const FIRST_BITS = 1024;

/** A cache of values derived from texts, bounded by the length of the texts. It has two generations: when the younger is full, the older is dropped with all entries that were not used since. */
export class TextCache<V> {
  private young = new Map<string, V>();
  private old = new Map<string, V>();
  private youngLength = 0;

  /** @param maxLength of all texts of a generation, in UTF-16 units. @param maxTextLength longer texts are not cached */
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

  /** Caches a value. @param text has its own memory, see `ownText` */
  set(text: string, value: V): void {
    if (text.length > this.maxTextLength) return;
    if (this.youngLength + text.length > this.maxLength) {
      this.old = this.young;
      this.young = new Map();
      this.youngLength = 0;
    }
    this.young.set(text, value);
    // An entry takes more memory than its characters.
    this.youngLength += text.length + ENTRY_LENGTH;
  }
}

/** The approximate size of an entry besides its text, in UTF-16 units. */
const ENTRY_LENGTH = 64;

/** A text as it is shown, and what that depends on. */
interface ShownText {
  readonly shown: string;
  /** Words that were unknown: if one of them becomes known, the text is shown differently. */
  readonly hidden: AskedWords;
  /** The number of known words at the last check. */
  knownCount: number;
}

/** The limits for all texts of a generation and for one text, in UTF-16 units. A run's messages and notes repeat a few hundred texts. */
const MAX_LENGTH = 512 * 1024;
const MAX_TEXT_LENGTH = 2048;

/** Caches how texts are shown to one run. Names are only ever added, so a text changes only when a word that was hidden in it becomes known. */
export class ProseCache {
  private readonly texts = new TextCache<ShownText>(MAX_LENGTH, MAX_TEXT_LENGTH);

  private readonly others: TextCache<SharedText>;

  /** @param shared texts that other runs have read; those runs may know other names */
  constructor(
    private readonly names: KnownNames,
    private readonly sanitize: Sanitize,
    shared: SharedTexts,
  ) {
    this.others = shared.prose(sanitize);
  }

  /** Returns a text as it is shown. @param isDetached whether the text has its own memory, see `ownText` */
  show(text: string, isDetached = false): ShownText {
    const found = this.texts.get(text);
    if (found !== undefined && this.isCurrent(found)) return found;
    const kept = isDetached ? text : ownText(text);
    const { shown, hidden } = this.fromOthers(kept) ?? this.read(kept);
    const mine = { shown, hidden, knownCount: this.names.size };
    this.texts.set(kept, mine);
    return mine;
  }

  /** Returns how another run showed the text, if this run would show it the same way. */
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

  /** Whether a text would still be shown the same way. */
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

/** Wraps a run's names and records which words were asked for, known and unknown. */
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

/** Makes a text safe to show. The result depends on the text, and on which of the words that it asks for are known. */
export type Sanitize = (text: string, names: WordList) => string;

/** Words that a text asked for, by `has` and by `hasOutsideQuotes`. */
export interface AskedWords {
  readonly anywhere: readonly string[];
  readonly outsideQuotes: readonly string[];
}

/** A text as it is shown, and the words that this depends on. */
export interface SharedText {
  readonly shown: string;
  /** The words that were unknown, and those that were known. */
  readonly hidden: AskedWords;
  readonly kept: AskedWords;
}

/** A statement as it may be exported. */
export interface ExportedSql {
  /** The statement, redacted by the level; `undefined` if no SQL may be shown. */
  readonly text: string | undefined;
  /** SHA-256 of the whole statement in hexadecimal digits if no text is shown. */
  readonly sha256: string | undefined;
  readonly operation: string | undefined;
  /** A summary in a few words; only the verb if no text is shown. */
  readonly summary: string | undefined;
  /** The only relation that the statement writes or reads, if it may be shown. */
  readonly collection: string | undefined;
}

/** A redacted statement with the identifiers in it. */
export interface SharedStatement {
  readonly sql: ExportedSql;
  /** The identifiers that a run learns from it. */
  readonly identifiers: readonly string[];
}

/** The limits for all statements of a generation and for one, in UTF-16 units: enough for a run of some thousand nodes. */
const MAX_STATEMENTS_LENGTH = 2 * 1024 * 1024;
const MAX_STATEMENT_LENGTH = 16_384;

/**
 * Texts and statements that runs of a destination have read, shared with later runs: a project's runs have much the same messages and statements. Each way of sanitizing has a separate cache, so that
 * none shows what only another allows.
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
