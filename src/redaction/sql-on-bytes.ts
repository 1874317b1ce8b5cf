import { copyText, view } from '../record/arena.js';
import { MAX_SQL_LENGTH, type SqlDialect } from './sanitize-sql.js';
import { Keyword, MAX_SUMMARY_LENGTH, MAX_TARGETS } from './sql-keywords.js';
import {
  Char,
  Code,
  charOf,
  codeAt,
  DECLINED,
  endOfBlockComment,
  endOfLine,
  endOfNumber,
  endOfQuoted,
  endOfString,
  escapesBehind,
  isPlainName,
  isStringQuote,
  isTag,
  prefixedQuoteAt,
} from './sql-tokens-on-bytes.js';
import { currentWords, Flag, mixed, type Words } from './words.js';

/**
 * Removes the values and comments from a statement in the arena. Gives exactly the result of `sanitizeSql`, or declines. The result is in the fields of this object and in the arena until the next
 * statement.
 */
export class SqlOnBytes {
  /** The end of the sanitized statement, which begins at `to`. */
  textEnd = 0;
  /** The identifiers that a run may learn, in order. */
  identifiers: number[] = [];
  private words = currentWords();
  private readonly relations = new RelationFinder();
  private readonly verb = new VerbFinder();
  /** The written relation, unless its name ends the statement: `sanitizeSql` does not count such a name for a summary, nor as the relation of a statement without a verb. */
  private writtenEarly = 0;
  private end = 0;
  private textStart = 0;
  /** Pending white space, so that none is written at the ends or twice; 0 for none. */
  private space = 0;
  /** The end of the text if it is a `?` that at most a comma follows: a literal there belongs to the same list. */
  private listEnd = 0;
  private isAfterComma = false;

  /**
   * Writes the statement from `start` to `end` without its values at `to`; the result is not longer than the statement.
   * @returns false if it declines; then `sanitizeSql` has to be used
   */
  sanitize(start: number, end: number, dialect: SqlDialect, words: Words, to: number): boolean {
    if (end - start > MAX_SQL_LENGTH || !words.hasRoomFor(end - start)) return false;
    this.words = words;
    this.end = end;
    this.textStart = to;
    this.textEnd = to;
    this.space = 0;
    this.listEnd = 0;
    this.isAfterComma = false;
    this.identifiers = [];
    this.relations.begin(words);
    this.verb.begin();
    words.beginPass();
    let at = start;
    while (at !== DECLINED && at < end) at = this.readToken(at, dialect);
    this.writtenEarly = this.relations.written;
    this.relations.finish();
    return at !== DECLINED;
  }

  get hasOperation(): boolean {
    return this.verb.keyword !== 0;
  }

  /** Writes the verb in capitals, with its object. @returns its end */
  putOperation(to: number): number {
    return this.verb.put(to);
  }

  /** Writes the summary of the statement. @returns its end */
  putSummary(to: number): number {
    const { words, writtenEarly, verb } = this;
    const read = this.relations.reading().slice(0, MAX_TARGETS);
    const isReading = (verb.keyword & Keyword.reads) !== 0;
    let at = isReading ? putSelect(to) : verb.put(to);
    if (writtenEarly !== 0) at = words.put(putBlank(at), writtenEarly);
    if (read.length > 0 && !isReading) at = putSelect(putBlank(at));
    for (const name of read) at = words.put(putBlank(at), name);
    return Math.min(at, to + MAX_SUMMARY_LENGTH);
  }

  /** The relation that it writes, or else the only one that it reads, as the number of a word; 0 for none. */
  get collection(): number {
    const { relations } = this;
    const written = this.hasOperation ? relations.written : this.writtenEarly;
    if (written !== 0) return written;
    const [only = 0, another] = relations.reading();
    return another === undefined ? only : 0;
  }

  /** @returns the offset of the next token, or DECLINED */
  private readToken(at: number, dialect: SqlDialect): number {
    const { end } = this;
    const code = view.getUint8(at);
    const char = charOf(code);
    if (char === Char.space) {
      if (code === Code.lineBreak) this.space = Code.lineBreak;
      else if (this.space === 0) this.space = Code.blank;
      return at + 1;
    }
    if (char === Char.wordStart) return this.readWord(at, dialect);
    const following = codeAt(at + 1, end);
    if (char === Char.digit || (code === Code.dot && charOf(following) === Char.digit))
      return this.putLiteral(endOfNumber(at, end));
    if (isStringQuote(code, dialect)) return this.putLiteral(endOfString(at, end, dialect.backslashEscapes, dialect));
    if (code === Code.doubleQuote || code === Code.backtick) return this.readQuoted(at, code);
    if (code === Code.openBracket && dialect.bracketIdentifiers) return this.readQuoted(at, Code.closeBracket);
    if (code === Code.minus && following === Code.minus) return this.passComment(endOfLine(at, end));
    if (code === Code.slash && following === Code.star) return this.passComment(endOfBlockComment(at, end));
    if (code === Code.hash && dialect.hashComments === 'unknown') return DECLINED;
    if (code === Code.hash && dialect.hashComments === 'always') return this.passComment(endOfLine(at, end));
    if (code === Code.dollar && isTag(at, end)) return DECLINED;
    this.putSymbol(code);
    return at + 1;
  }

  /** Reads a keyword or name, or a string with a prefix. */
  private readWord(start: number, dialect: SqlDialect): number {
    const { end, words } = this;
    let hash = words.seed;
    let at = start;
    for (; at < end; at++) {
      const code = view.getUint8(at);
      if ((charOf(code) & Char.wordPart) === 0) break;
      if (code >= 0x80) return DECLINED;
      hash = mixed(hash, code);
    }
    const quoteAt = prefixedQuoteAt(start, at, end, dialect);
    if (quoteAt !== 0) return this.putLiteral(endOfString(quoteAt, end, escapesBehind(start, at, dialect), dialect));
    this.putPart(start, at);
    const word = words.findHashed(start, at, hash);
    const flags = words.flagsOf(word);
    this.verb.see(flags, start, at);
    this.learn(word, flags);
    this.relations.seeWord(word, flags);
    return at;
  }

  private readQuoted(start: number, closing: number): number {
    const behind = endOfQuoted(start + 1, this.end, closing);
    if (behind === DECLINED) return DECLINED;
    this.putPart(start, behind);
    const word = this.words.find(start + 1, behind - 1);
    if (isPlainName(start + 1, behind - 1)) this.learn(word, this.words.flagsOf(word));
    this.relations.seeQuoted(word);
    return behind;
  }

  private learn(word: number, flags: number): void {
    if (this.words.isFirst(word) && (flags & (Flag.common | Flag.long)) === 0) this.identifiers.push(word);
  }

  private passComment(behind: number): number {
    if (this.space === 0) this.space = Code.blank;
    return behind;
  }

  private putPart(start: number, end: number): void {
    this.putSpace();
    this.textEnd = copyText(this.textEnd, start, end - start);
    this.isAfterComma = false;
    this.listEnd = 0;
  }

  private putLiteral(behind: number): number {
    this.relations.seeLiteral();
    if (this.isAfterComma) {
      this.textEnd = this.listEnd;
      this.space = 0;
    } else {
      this.putSpace();
      view.setUint8(this.textEnd++, Code.question);
    }
    this.listEnd = this.textEnd;
    this.isAfterComma = false;
    return behind;
  }

  private putSymbol(code: number): void {
    this.isAfterComma = code === Code.comma && this.listEnd === this.textEnd;
    if (!this.isAfterComma) this.listEnd = 0;
    this.putSpace();
    view.setUint8(this.textEnd++, code);
    this.relations.seeSymbol(code);
  }

  private putSpace(): void {
    if (this.space !== 0 && this.textEnd !== this.textStart) view.setUint8(this.textEnd++, this.space);
    this.space = 0;
  }
}

/** Finds the verb of a statement: its first word, or after `WITH …` the first word that begins a statement. */
class VerbFinder {
  /** The bits of the verb; 0 for none. */
  keyword = 0;
  private start = 0;
  private end = 0;
  private objectStart = 0;
  private objectEnd = 0;
  private isDone = false;

  begin(): void {
    this.keyword = 0;
    this.objectStart = 0;
    this.objectEnd = 0;
    this.isDone = false;
  }

  see(flags: number, start: number, end: number): void {
    if (this.isDone) return;
    if (this.keyword === 0 || (this.keyword & Keyword.with) !== 0) {
      if ((flags & Keyword.verb) !== 0) {
        this.keyword = flags;
        this.start = start;
        this.end = end;
      }
      this.isDone = (this.keyword & (Keyword.with | Keyword.takesObject)) === 0;
    } else if ((flags & Keyword.object) !== 0) {
      this.objectStart = start;
      this.objectEnd = end;
      this.isDone = true;
    } else if ((flags & Keyword.modifier) === 0) this.isDone = true;
  }

  put(to: number): number {
    const at = putCapitals(to, this.start, this.end);
    return this.objectEnd === 0 ? at : putCapitals(putBlank(at), this.objectStart, this.objectEnd);
  }
}

/** The previous token, as far as it matters. */
const Before = { other: 0, dot: 1, delete: 2, fromFunction: 3 } as const;
const Wanted = { none: 0, written: 1, read: 2 } as const;

/** Finds the relations that a statement names, by the keywords before them. All names are numbers of words. */
class RelationFinder {
  /** The first relation that it writes; 0 for none. */
  written = 0;
  private readonly alsoWritten = new Set<number>();
  private readonly read = new Set<number>();
  private readonly defined = new Set<number>();
  /** For each open bracket, whether a `FROM` in it is no clause, as in `extract(day from x)`. */
  private brackets: boolean[] = [];
  private words = currentWords();
  private wanted: number = Wanted.none;
  private before: number = Before.other;
  private name = 0;
  private isOpen = false;

  begin(words: Words): void {
    this.words = words;
    this.written = 0;
    if (this.alsoWritten.size > 0) this.alsoWritten.clear();
    if (this.read.size > 0) this.read.clear();
    if (this.defined.size > 0) this.defined.clear();
    this.brackets = [];
    this.wanted = Wanted.none;
    this.before = Before.other;
    this.isOpen = false;
  }

  /** Returns the relations that the statement reads and neither writes nor defines. */
  reading(): readonly number[] {
    return [...this.read].filter((name) => !this.defined.has(name) && !this.alsoWritten.has(name));
  }

  seeWord(word: number, flags: number): void {
    if (this.isOpen && this.before === Before.dot) this.name = word;
    else {
      this.close(false, (flags & Keyword.as) !== 0);
      if ((flags & Keyword.readBefore) !== 0 && this.brackets.at(-1) !== true) {
        const isWritten = (flags & Keyword.into) !== 0 || this.before === Before.delete;
        this.wanted = isWritten ? Wanted.written : Wanted.read;
      } else if ((flags & Keyword.writtenBefore) !== 0 && this.written === 0) this.wanted = Wanted.written;
      else if ((flags & Keyword.passedBeforeName) === 0) this.begins(word);
    }
    if ((flags & Keyword.fromFunction) !== 0) this.before = Before.fromFunction;
    else this.before = (flags & Keyword.delete) !== 0 ? Before.delete : Before.other;
  }

  seeQuoted(word: number): void {
    if (this.isOpen && this.before === Before.dot) this.name = word;
    else {
      this.close(false, false);
      this.begins(word);
    }
    this.before = Before.other;
  }

  seeSymbol(code: number): void {
    const isDot = code === Code.dot;
    if (!isDot || !this.isOpen) {
      this.close(code === Code.open, false);
      if (code === Code.open) {
        this.brackets.push(this.before === Before.fromFunction);
        this.wanted = Wanted.none;
      } else if (code === Code.close) this.brackets.pop();
    }
    this.before = isDot ? Before.dot : Before.other;
  }

  seeLiteral(): void {
    this.close(false, false);
    this.wanted = Wanted.none;
    this.before = Before.other;
  }

  /** Ends the statement. */
  finish(): void {
    this.close(false, false);
  }

  private begins(name: number): void {
    this.name = name;
    this.isOpen = true;
  }

  /** Classifies the current name once the token after it is known. */
  private close(isBeforeBracket: boolean, isBeforeAs: boolean): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    const { name, wanted, words } = this;
    this.wanted = Wanted.none;
    if (wanted === Wanted.written) {
      const written = words.withoutInterim(name);
      if (this.written === 0) this.written = written;
      this.alsoWritten.add(written);
    } else if (wanted === Wanted.read && !isBeforeBracket) this.read.add(words.withoutInterim(name));
    else if (isBeforeAs) this.defined.add(name);
  }
}

/** Writes letters in capitals. @returns their end */
function putCapitals(to: number, start: number, end: number): number {
  for (let at = start; at < end; at++) view.setUint8(to + at - start, view.getUint8(at) & 0xdf);
  return to + end - start;
}

function putSelect(to: number): number {
  for (let at = 0; at < SELECT.length; at++) view.setUint8(to + at, SELECT.charCodeAt(at));
  return to + SELECT.length;
}

const SELECT = 'SELECT';

function putBlank(to: number): number {
  view.setUint8(to, Code.blank);
  return to + 1;
}
