import type { WordList } from './known-names.js';
import type { RedactionLevel } from './redaction-level.js';
import type { SqlDialect } from './sql-dialect.js';
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

/** All texts of a generation, and the longest one, in UTF-16 units. */
const MAX_LENGTH = 512 * 1024;
const MAX_TEXT_LENGTH = 2048;
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
