import { putText, type Range, REGION } from '../../record/arena.js';
import { type KnownText, TextMemo, texts } from '../../record/texts.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import { readStatement } from '../../redaction/redactor.js';
import type { SqlDialect } from '../../redaction/sanitize-sql.js';
import { SqlOnBytes } from '../../redaction/sql-on-bytes.js';
import { currentWords, type FoundWords } from '../../redaction/words.js';
import { AttributeTag, keyOf, putTextAttribute } from '../wire/otlp-fields.js';

const OPERATION = keyOf('db.operation.name');
const SUMMARY = keyOf('db.query.summary');
const COLLECTION = keyOf('db.collection.name');

const MIB = 1024 * 1024;
/** Where statements are made safe, and the value of an attribute while they are. A remembered statement is much shorter. */
const MADE = REGION.scratch + 2 * MIB;
const VALUE = REGION.scratch + 6 * MIB;

/** A statement as it may be exported. */
export interface Statement {
  readonly dialect: SqlDialect;
  /** What is shown of it; where `isHash`, its SHA-256 in hexadecimal digits. */
  readonly text: Range;
  readonly isHash: boolean;
  /** Attributes of a query's span, as OTLP has them: its verb, what it is in a few words, the relation that it is about. */
  readonly about: Range;
  /** What a run learns from it. */
  readonly identifiers: FoundWords;
}

/** What may be exported of statements at one level: on bytes where that can be, else as the redactor says. */
export class Statements {
  private readonly sanitizer = new SqlOnBytes();
  private readonly memo = new TextMemo<Statement[]>();

  constructor(private readonly level: RedactionLevel) {}

  /** What may be exported of a statement. Its ranges hold until the next one is asked for; of one that is remembered, as long as that is. */
  of(statement: KnownText, dialect: SqlDialect): Statement {
    const known = this.memo.get(statement) ?? [];
    for (const one of known) if (one.dialect === dialect) return one;
    const made = this.onBytes(statement, dialect) ?? this.asText(statement, dialect);
    const isKept = made.about.at < REGION.scratch;
    if (isKept) {
      known.push(made);
      this.memo.set(statement, known);
    }
    return made;
  }

  private onBytes(statement: KnownText, dialect: SqlDialect): Statement | undefined {
    const { level, sanitizer } = this;
    const words = currentWords();
    const end = statement.at + statement.length;
    if (level === 'statements' || !sanitizer.sanitize(statement.at, end, dialect, words, MADE)) return undefined;
    const { textEnd } = sanitizer;
    let to = textEnd;
    if (sanitizer.hasOperation) {
      to = putValue(to, OPERATION, sanitizer.putOperation(VALUE));
      to = putValue(to, SUMMARY, sanitizer.putSummary(VALUE));
    }
    const { collection } = sanitizer;
    if (collection !== 0) to = putValue(to, COLLECTION, words.put(VALUE, collection));
    const numbers = level === 'off' ? [] : sanitizer.identifiers;
    return { dialect, ...this.ranges(statement, textEnd, to), isHash: false, identifiers: { words, numbers } };
  }

  private asText(statement: KnownText, dialect: SqlDialect): Statement {
    const { sql, identifiers } = readStatement(statement.text, this.level, dialect);
    const isHash = sql.text === undefined;
    // Without redaction a statement may be of any length, and stands there already.
    const textEnd = this.level === 'off' ? MADE : putText(MADE, sql.text ?? sql.sha256 ?? '');
    let to = textEnd;
    if (sql.operation !== undefined) to = putValue(to, OPERATION, putText(VALUE, sql.operation));
    if (sql.summary !== undefined) to = putValue(to, SUMMARY, putText(VALUE, sql.summary));
    if (sql.collection !== undefined) to = putValue(to, COLLECTION, putText(VALUE, sql.collection));
    const words = currentWords();
    const numbers = identifiers.map((word) => words.numberOf(word)).filter((word) => word !== 0);
    return { dialect, ...this.ranges(statement, textEnd, to), isHash, identifiers: { words, numbers } };
  }

  /** Keeps what was made; where there is no room for it, it stands there until the next one is. @param textEnd behind what is shown, from where on the attributes are */
  private ranges(statement: KnownText, textEnd: number, end: number): { readonly text: Range; readonly about: Range } {
    const isOff = this.level === 'off';
    const start = isOff ? textEnd : MADE;
    const at = (statement.number < 0 ? undefined : texts.keep(start, end - start)?.at) ?? start;
    return {
      text: isOff ? { at: statement.at, length: statement.length } : { at, length: textEnd - MADE },
      about: { at: at + textEnd - start, length: end - textEnd },
    };
  }
}

/** Writes an attribute of a span whose value stands at `VALUE`. */
function putValue(to: number, key: Range, end: number): number {
  return putTextAttribute(to, AttributeTag.span, key, VALUE, end - VALUE);
}
