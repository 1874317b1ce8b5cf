import { createHash } from 'node:crypto';
import { ownText } from '../record/attributes.js';
import type { AttributePolicy } from '../record/event-table.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { redactNativeSentence } from '../run/native-sentences.js';
import {
  attributePolicyOf,
  type ExportedSql,
  KnownNames,
  type NameLists,
  ProseCache,
  type RedactionLevel,
  type SharedStatement,
  SharedTexts,
} from './known-names.js';
import { firstSafeWords, sanitizeDiffTable, sanitizeProse, sanitizeUnknownText } from './sanitize-prose.js';
import { type SqlDialect, sanitizeSql, sqlDialectOf } from './sanitize-sql.js';
import { isCommonWord } from './vocabulary.js';
import type { FoundWords } from './words.js';

/** Redacts the texts of one run at one level. */
export class Redactor {
  private dialect: SqlDialect = sqlDialectOf(undefined);
  private readonly prose: ProseCache;
  private readonly unknownTexts: ProseCache;
  /** Statements whose identifiers the run has learned. */
  private readonly learned = new WeakSet<SharedStatement>();

  /** @param shared texts that other runs have read */
  constructor(
    readonly level: RedactionLevel,
    private readonly names = new KnownNames(),
    private readonly shared = new SharedTexts(),
  ) {
    const isDetailed = level !== 'statements';
    this.prose = new ProseCache(names, isDetailed ? sanitizeProse : firstSafeWords, shared);
    this.unknownTexts = new ProseCache(names, isDetailed ? sanitizeUnknownText : firstSafeWords, shared);
  }

  /** Sets the database that further statements are for. */
  useAdapter(adapterType: string): void {
    this.dialect = sqlDialectOf(adapterType);
  }

  /** Learns a structural name of the run, which texts may then show. */
  learn(name: string): void {
    if (this.level !== 'off') this.names.learn(name);
  }

  /** Learns the words of such a name that `wordsAt` found. */
  learnWords(name: FoundWords): void {
    if (this.level !== 'off') this.names.learnWords(name);
  }

  /** Learns identifiers of one of the run's statements. */
  learnIdentifiers(identifiers: FoundWords): void {
    if (this.level === 'literals') this.names.learnIdentifiers(identifiers);
  }

  /** Learns names that were collected from the run's records earlier. */
  learnAll({ words, identifiers }: NameLists): void {
    if (this.level === 'off') return;
    for (const word of words) this.names.learnDirectly(word);
    if (this.level === 'literals') for (const word of identifiers) this.names.learnIdentifier(word);
  }

  /** Learns the identifiers of a statement, which texts may then show. @param adapterType as for `sql` */
  learnStatement(statement: string, adapterType: string | undefined): void {
    if (this.level === 'literals') this.sql(statement, adapterType);
  }

  /** Returns the dialect of a statement. @param adapterType the database that it is for; default: the one set by `useAdapter` */
  dialectOf(adapterType?: string): SqlDialect {
    return adapterType === undefined ? this.dialect : sqlDialectOf(adapterType);
  }

  /** Redacts a statement. @param adapterType as for `dialectOf` */
  sql(statement: string, adapterType?: string): ExportedSql {
    const dialect = this.dialectOf(adapterType);
    const statements = this.shared.statements(this.level, dialect);
    let read = statements.get(statement);
    if (read === undefined) {
      const kept = ownText(statement);
      read = readStatement(kept, this.level, dialect);
      statements.set(kept, read);
    }
    if (!this.learned.has(read)) {
      for (const word of read.identifiers) this.names.learnIdentifier(word);
      this.learned.add(read);
    }
    return read.sql;
  }

  /** Redacts a message: a status, a log body, an error text. @param isDetached whether it has its own memory, see `ownText` */
  text(message: string, isDetached = false): string {
    if (this.level === 'off' || message === '') return message;
    return this.prose.show(message, isDetached).shown;
  }

  /** Redacts a command line. */
  command(commandLine: string): string {
    return this.level === 'off' ? commandLine : sanitizeCommand(commandLine);
  }

  /** Redacts a unit test's table of differences. */
  diffTable(table: string): string {
    if (this.level === 'off') return table;
    return this.level === 'literals' ? sanitizeDiffTable(table, this.names) : '?';
  }

  /** Redacts an attribute other than an SQL statement, by its exported key and its record's event. */
  attribute(key: string, value: string, eventType: string): string {
    return this.byPolicy(attributePolicyOf(key, eventType), value);
  }

  /** Redacts a value with a known policy. @param isDetached whether the value has its own memory, see `ownText` */
  byPolicy(policy: AttributePolicy, value: string, isDetached = false): string {
    if (this.level === 'off') return value;
    switch (policy) {
      case 'keep':
        return value;
      case 'name':
        return NAME.test(value) ? value : this.text(value, isDetached);
      case 'command':
        return this.command(value);
      case 'diffTable':
        return this.diffTable(value);
      case 'text':
        return this.text(value, isDetached);
      case 'ownWords':
        return value === '' ? value : this.unknownTexts.show(value, isDetached).shown;
      case 'sql':
        return this.sql(value).text ?? '?';
      case 'deny':
        return '?';
    }
  }

  /** Returns a number at an exported key; `undefined` if numbers there may be values of the project. */
  number(key: string, value: number, eventType: string): number | undefined {
    return this.level === 'off' || attributePolicyOf(key, eventType) !== 'deny' ? value : undefined;
  }
}

/** Returns what may be exported of a statement, and the identifiers that a run learns from it. */
export function readStatement(statement: string, level: RedactionLevel, dialect: SqlDialect): SharedStatement {
  const { text, identifiers, ...about } = sanitizeSql(statement, dialect);
  switch (level) {
    case 'off':
      return { sql: { ...about, text: statement, sha256: undefined }, identifiers: [] };
    case 'literals': {
      const learnable = [...identifiers].filter((word) => !isCommonWord(word.toLowerCase()));
      return { sql: { ...about, text, sha256: undefined }, identifiers: learnable };
    }
    case 'statements': {
      const { operation } = about;
      const sha256 = createHash('sha256').update(statement).digest('hex');
      return {
        sql: { text: undefined, sha256, operation, summary: operation, collection: undefined },
        identifiers: [],
      };
    }
  }
}

/** A single word: letters, digits and the punctuation of names, versions and paths. */
const NAME = /^[\p{L}_][\w.\-/:@+#~]{0,200}$|^\d+(?:\.\d+){1,3}[\w.+-]{0,40}$/u;

/** Attributes with names of the project's things, which are exported unchanged. */
export const NAME_ATTRIBUTES = [
  'unique_id',
  'name',
  'identifier',
  'schema',
  'database',
  'relative_path',
  'package_name',
  'profile',
  'target',
] as const;

/** Events of the public schema whose attributes are known to be names, by the folder of their message. */
export const NAMING_EVENTS = /^v1\.public\.events\.fusion\.(?:node|asset|hook|query)\./;

/** The part of a record from which names are learned. */
export interface NamingRecord {
  readonly eventType: string;
  readonly isLog: boolean;
  /** Returns an attribute if it is a text. */
  text(name: string): string | undefined;
}

/** Teaches the redactor the names in a record, its statement, and the database of further statements. A statement is in the end of a span, or in a log record. */
export function learnNames(record: TelemetryRecord, redactor: Redactor): void {
  const isLog = record.recordType === 'LogRecord';
  const naming = { eventType: record.eventType, isLog, text: (name: string) => record.attributes.text(name) };
  learnNamesAlone(naming, redactor);
  if (record.recordType !== 'SpanStart') learnStatement(naming, redactor);
}

/** Teaches the redactor the statement of a record. */
export function learnStatement(record: NamingRecord, redactor: Redactor): void {
  const statement = record.text('sql');
  if (statement !== undefined) redactor.learnStatement(statement, record.text('adapter_type'));
}

/** Teaches the redactor the names and the database of a record. */
function learnNamesAlone(record: NamingRecord, redactor: Redactor): void {
  if (!NAMING_EVENTS.test(record.eventType)) {
    const uniqueId = record.isLog ? record.text('unique_id') : undefined;
    if (uniqueId !== undefined) redactor.learn(uniqueId);
    return;
  }
  for (const attribute of NAME_ATTRIBUTES) {
    const name = record.text(attribute);
    if (name !== undefined) redactor.learn(name);
  }
  const adapterType = record.text('adapter_type');
  if (adapterType !== undefined) redactor.useAdapter(adapterType);
}

/** Redacts the status message of a run or step, except for sentences that this program wrote. */
export function statusText(message: string, redactor: Pick<Redactor, 'text'>): string {
  const redact = (part: string, isProgram: boolean) => (isProgram ? sanitizeCommand(part) : redactor.text(part));
  return redactNativeSentence(message, redact) ?? redactor.text(message);
}

/**
 * Redacts a command line. Known flags are shown, and the values of those that name things. From the first flag with a free value on (`--vars`, `--inline`, `--args`) everything becomes `?`: the
 * engine joins the words with spaces, so the end of such a value cannot be found.
 * @param commandLine for example `dbt build --select orders --vars {a: 1}`
 */
export function sanitizeCommand(commandLine: string): string {
  const words = commandLine.split(/\s+/).filter((word) => word !== '');
  const kept: string[] = [];
  /** The flag that the next words belong to; none for the program's name and its commands. */
  let currentFlag: string | undefined;
  for (const [position, word] of words.entries()) {
    if (!word.startsWith('-')) {
      const isShown =
        currentFlag === undefined
          ? position < 3 && COMMAND.test(word)
          : NAMING_FLAGS.has(currentFlag) && PLAIN_VALUE.test(word);
      if (isShown) kept.push(position === 0 ? word.slice(word.lastIndexOf('/') + 1) : word);
      else if (kept.at(-1) !== '?') kept.push('?');
      continue;
    }
    const equals = word.indexOf('=');
    const flag = equals === -1 ? word : word.slice(0, equals);
    const isFree = FREE_VALUE_FLAGS.has(flag);
    if (isFree || !FLAG.test(flag)) return [...kept, ...(isFree ? [flag] : []), '?'].join(' ');
    currentFlag = flag;
    const value = equals === -1 ? undefined : word.slice(equals + 1);
    const isValueShown = value !== undefined && NAMING_FLAGS.has(flag) && PLAIN_VALUE.test(value);
    kept.push(value === undefined ? flag : `${flag}=${isValueShown ? value : '?'}`);
  }
  return kept.join(' ');
}

const FREE_VALUE_FLAGS: ReadonlySet<string> = new Set(['--vars', '--inline', '--args', '--sql', '--query']);
/** Flags whose values are names of nodes, files, levels or targets. */
const NAMING_FLAGS: ReadonlySet<string> = new Set(
  `--select -s --models -m --exclude --selector --resource-type --resource-types --exclude-resource-type --target -t
   --profile --threads --log-level --log-level-file --log-format --log-path --target-path --profiles-dir --project-dir
   --otel-file-name --otel-parquet-file-name --limit --output --output-keys --state --defer-state --indirect-selection
   --static-analysis --invocation-id --parent-span-id --event-time-start --event-time-end --batch-size`.split(/\s+/),
);
const FLAG = /^--?[a-z][a-z0-9-]{0,40}$/;
/** The program, its command and the name after that: `dbt run-operation my_op`. */
const COMMAND = /^[A-Za-z/.][\w/.-]{0,200}$/;
/** A selector, a name or a path, without quotes or spaces. */
const PLAIN_VALUE = /^[\w.:+@*/,-]{1,200}$/;
