import { grown } from '../core/bytes.js';
import { ownText } from '../record/attributes.js';
import { type AttributePolicy, EVENTS, POLICY_BY_KEY } from '../record/event-table.js';
import { type KnownText, texts } from '../record/texts.js';
import { eventName } from '../run/node-outcome.js';
import type { SqlDialect } from './sanitize-sql.js';
import { isLearnable } from './vocabulary.js';
import { currentWords, Flag, type FoundWords, type Words, wordsOf } from './words.js';

/**
 * How much of SQL leaves the machine. `literals` (default): statements stay readable, their literals become `?` and
 * their comments go. `statements`: no SQL at all, a hash instead. `off`: everything as the engine sent it.
 */
export type RedactionLevel = 'literals' | 'statements' | 'off';

/**
 * Who reads a text. `artifactReader`: a signed-in user who may read artifacts, which contain every text
 * unredacted. `anybodyElse`: a destination of telemetry, an endpoint of webhooks, a chat, a mailbox, and callers without that right.
 */
export type TextReader = 'artifactReader' | 'anybodyElse';

/** The single function that decides how much of a run's texts a reader sees. @param setting `redaction`, of all or of the destination */
export function redactionFor(reader: TextReader, setting: RedactionLevel): RedactionLevel {
  return reader === 'artifactReader' ? 'off' : setting;
}

/**
 * The policy of an attribute by its exported key. What is not listed may contain anything, so it is `text`, or `ownWords` in
 * events of which the public schema of this version knows nothing.
 */
export function attributePolicyOf(key: string, eventType: string): AttributePolicy {
  const known = POLICY_BY_KEY.get(key);
  if (known !== undefined) return known;
  if (key.startsWith('extra.')) return 'deny';
  return KNOWN_EVENTS.has(eventName(eventType)) ? 'text' : 'ownWords';
}

/** Events of the public schema, by the last part of their names. */
export const KNOWN_EVENTS: ReadonlySet<string> = new Set([...EVENTS.keys()].map(eventName));

/** Most words that are remembered; later names are then unknown, so texts show `?` for them. */
export const MAX_KNOWN_WORDS = 200_000;
/** Most identifiers of statements that are remembered beside them. */
export const MAX_IDENTIFIERS = 50_000;

/** Words that a text may show beside those of the vocabulary. */
export interface WordList {
  /** Whether it may stand anywhere, in quotes too. */
  has(word: string): boolean;
  /** Whether it may stand outside of quotes, where values seldom are. */
  hasOutsideQuotes(word: string): boolean;
}

/** The names of a run as lists. */
export interface NameLists {
  readonly words: readonly string[];
  readonly identifiers: readonly string[];
}

/**
 * Names of a run's own things (nodes, files, relations), learned from structural attributes that are exported anyway.
 * Texts may show them. Identifiers of its statements (columns, functions) count outside of quotes only: a value in quotes
 * may well be spelled like a column. They are bits of the words of one table, which the run keeps.
 */
export class KnownNames implements WordList {
  private words: Words | undefined;
  private bits = new Uint8Array(0);
  private nameCount = 0;
  private identifierCount = 0;
  /** Names that were learned lately: each record of a node brings the same few. */
  private readonly lately = new TextCache<true>(LATELY_LENGTH, MAX_LATELY_LENGTH);

  /** How many words are known; it only grows, so a text that was read at the same size reads the same. */
  get size(): number {
    return this.nameCount + this.identifierCount;
  }

  /** Learns a name's words, for example all of `model.shop.orders` or `models/marts/orders.sql`. */
  learn(name: string): void {
    if (this.nameCount >= MAX_KNOWN_WORDS || this.lately.get(name) !== undefined) return;
    this.lately.set(ownText(name), true);
    this.learnOwn(name);
  }

  /** As `learn`, of a name that is not likely to have come before. */
  learnOwn(name: string): void {
    if (this.nameCount < MAX_KNOWN_WORDS) this.learnWords(wordsOf(name, this.ownWords()));
  }

  /** Learns the words of a name, which `wordsAt` found. */
  learnWords(name: FoundWords): void {
    if (this.nameCount >= MAX_KNOWN_WORDS) return;
    for (const word of name.numbers) if (this.mark(name.words, word, NAME)) this.nameCount += 1;
  }

  /** Learns an identifier of a statement. */
  learnIdentifier(word: string): void {
    const words = this.ownWords();
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

  /** All of them, in a form that can be stored. */
  lists(): NameLists {
    return { words: this.textsOf(NAME), identifiers: this.textsOf(IDENTIFIER) };
  }

  has(word: string): boolean {
    return (this.bitsOf(word) & NAME) !== 0;
  }

  hasOutsideQuotes(word: string): boolean {
    return this.bitsOf(word) !== 0;
  }

  /** The table that was current when the run learned its first word. */
  private ownWords(): Words {
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

  /** Whether a word was not known so before. */
  private mark(words: Words, number: number, bit: number): boolean {
    const own = this.ownWords();
    const word = own.numberIn(words, number);
    if (word >= this.bits.length) this.bits = grown(this.bits, Math.max(FIRST_BITS, own.count + 1, word + 1));
    const bits = this.bits[word] ?? 0;
    if (word === 0 || (bits & bit) !== 0) return false;
    this.bits[word] = bits | bit;
    return true;
  }
}

/** What a run knows of a word. */
const NAME = 1;
const IDENTIFIER = 2;
const LATELY_LENGTH = 512 * 1024;
const MAX_LATELY_LENGTH = 512;

/** What a run may have learned of a text. */
export const Taught = { words: 1, identifiers: 2 } as const;

/** Which of the remembered texts taught a run something already. */
export class TaughtTexts {
  private marks = new Uint8Array(0);
  private generation = 0;

  /** Whether a text did not yet do so; from now on it did. Of one that is not remembered that is not known. @param mark of `Taught` */
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
