import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import { ATTR_DB_SYSTEM_NAME } from '@opentelemetry/semantic-conventions';
import { DEFAULT_MAPPING_OPTIONS, type MappingSwitches } from '../../config/mapping-options.js';
import { buffer, putText, type Range, REGION } from '../../record/arena.js';
import { Attributes, isJsonObject, type JsonValue } from '../../record/attributes.js';
import { type KnownText, TextMemo, texts } from '../../record/texts.js';
import { attributePolicyOf, type RedactionLevel, SharedTexts } from '../../redaction/known-names.js';
import { type Redactor, readStatement } from '../../redaction/redactor.js';
import type { SqlDialect } from '../../redaction/sanitize-sql.js';
import { SqlOnBytes } from '../../redaction/sql-on-bytes.js';
import { currentWords, type FoundWords, wordsAt } from '../../redaction/words.js';
import { nodeVerdictOf } from '../../run/node-outcome.js';
import type { NodeVerdict } from '../../run/verdict.js';
import { AttributeTag, encodeAttributes, keyOf, putTextAttribute, WireWriter } from '../wire/wire-writer.js';
import { flattenAttributes, isSpecialName, stableSpanName } from './exported-names.js';
import { systemNameOf, writeTestAttributes } from './plain-writer.js';
import type { AttributePlan, RecordPlan } from './record-plans.js';

interface ShownText {
  readonly text: string;
  readonly range: Range;
}

interface SpanName {
  readonly eventType: string;
  readonly shown: Range;
  /** Empty where it is exported as it is. */
  readonly original: Range;
}

/** Attributes made of an object, and their names. */
interface Nested {
  readonly range: Range;
  readonly names: readonly string[];
}

interface RememberedNested extends Nested {
  readonly plan: RecordPlan;
  readonly attribute: AttributePlan;
}

/** Where what is made stands until it is copied. */
const MADE = REGION.scratch + 10 * 1024 * 1024;
/** What comes to more is plain code's. */
const MAX_MADE_BYTES = 256 * 1024;
/** Plans that a nested text is remembered for. */
const MAX_NESTED = 16;
/** Policies by which a text is shown whatever names a run knows. */
const PURE: ReadonlySet<string> = new Set(['keep', 'deny']);
const NOTHING: Range = { at: 0, length: 0 };

/**
 * What the runs of a destination made of texts, for those that come after: a project's runs say much the same. What has no room is
 * `undefined`: plain code makes it then.
 */
export class SharedMapping {
  readonly prose = new SharedTexts();
  readonly statements: Statements;
  private readonly scratch = new WireWriter(64 * 1024);
  private readonly shownTexts = new TextMemo<ShownText>();
  private readonly words = new TextMemo<FoundWords>();
  private readonly names = new TextMemo<SpanName>();
  private readonly nestedTexts = new TextMemo<RememberedNested[]>();
  private readonly checks = new TextMemo<{ readonly role: string; readonly hasPassed: boolean }>();
  private readonly tests = new TextMemo<{ readonly verdict: NodeVerdict; readonly range: Range }>();
  private readonly upstreams = new TextMemo<{ readonly id: string | undefined }>();
  private readonly systems = new TextMemo<Range>();

  /** @param level of redaction, that of the destination */
  constructor(readonly level: RedactionLevel = DEFAULT_MAPPING_OPTIONS.redaction) {
    this.statements = new Statements(level);
  }

  /** The bytes of what is shown of a text. */
  shown(known: KnownText, text: string): Range | undefined {
    if (text === known.text && known.number >= 0) return known;
    const before = this.shownTexts.get(known);
    if (before !== undefined && before.text === text) return before.range;
    const range = this.textRange(text);
    if (range !== undefined) this.shownTexts.set(known, { text, range });
    return range;
  }

  /** The words of a name that texts may show once it is learned. */
  wordsOf(known: KnownText): FoundWords {
    const words = currentWords();
    const before = this.words.get(known);
    if (before?.words === words) return before;
    const found = wordsAt(known.at, known.length, words);
    this.words.set(known, found);
    return found;
  }

  /** A span's name as it is exported, and an attribute with the original where that is another. */
  stableName(eventType: string, known: KnownText): Omit<SpanName, 'eventType'> | undefined {
    const before = this.names.get(known);
    if (before?.eventType === eventType) return before;
    const name = stableSpanName(known.text, eventType, undefined);
    const shown = this.textRange(name);
    const original =
      name === known.text ? NOTHING : this.attributeRange({ 'run_bridge.span.original_name': known.text });
    if (shown === undefined || original === undefined) return undefined;
    const made = { eventType, shown, original };
    this.names.set(known, made);
    return made;
  }

  /** Attributes of what is in a text that is JSON. */
  nested(
    plan: RecordPlan,
    attribute: AttributePlan,
    known: KnownText,
    redactor: Redactor,
    switches: MappingSwitches,
  ): Nested | undefined {
    const all = this.nestedTexts.get(known) ?? [];
    for (const one of all) if (one.plan === plan && one.attribute === attribute) return one;
    const value = jsonOf(known.text);
    if (value === undefined) return undefined;
    const { name } = attribute;
    const attributes: OtelAttributes = {};
    flattenAttributes({ [name]: value }, plan.eventType, attributes, redactor, switches.attributes);
    const names = Object.keys(attributes);
    const meetsOther = (added: string) =>
      isSpecialName(added) || added === 'sql' || (added !== name && plan.has(added));
    if (names.some(meetsOther)) return undefined;
    // What names a run knows decides about texts: those are made anew each time.
    const isPure = (added: string) =>
      !holdsText(attributes[added]) ||
      (PURE.has(attributePolicyOf(added, plan.eventType)) && !isJson(attributes[added]));
    const isRemembered = redactor.level === 'off' || names.every(isPure);
    const range = this.attributeRange(attributes, isRemembered);
    if (range === undefined) return undefined;
    if (!isRemembered) return { range, names };
    const made = { plan, attribute, range, names };
    if (all.length < MAX_NESTED) all.push(made);
    this.nestedTexts.set(known, all);
    return made;
  }

  /** Returns whether a check (test, unit test, freshness) of a node that ended well has passed. @param role its attribute */
  hasPassed(role: string, known: KnownText): boolean {
    const before = this.checks.get(known);
    if (before?.role === role) return before.hasPassed;
    const value = jsonOf(known.text);
    const attributes = Attributes.of({ node_outcome: 'NODE_OUTCOME_SUCCESS', [role]: value ?? known.text });
    const hasPassed = nodeVerdictOf({ attributes, status: null }, 'none') === 'success';
    this.checks.set(known, { role, hasPassed });
    return hasPassed;
  }

  /** Attributes of a test by its unique id; none of another node. */
  test(uniqueId: KnownText, verdict: NodeVerdict): Range | undefined {
    const before = this.tests.get(uniqueId);
    if (before?.verdict === verdict) return before.range;
    const attributes: OtelAttributes = {};
    writeTestAttributes(uniqueId.text, verdict, attributes);
    const range = this.attributeRange(attributes);
    if (range !== undefined) this.tests.set(uniqueId, { verdict, range });
    return range;
  }

  /** The node that caused a skip, as the skipped one has it. */
  upstreamOf(detail: KnownText): string | undefined {
    let known = this.upstreams.get(detail);
    if (known === undefined) {
      const value = jsonOf(detail.text);
      const id = value !== undefined && isJsonObject(value) ? value.upstream_unique_id : undefined;
      known = { id: typeof id === 'string' ? id : undefined };
      this.upstreams.set(detail, known);
    }
    return known.id;
  }

  /** The attribute that says which database it is. */
  system(adapter: KnownText): Range | undefined {
    const before = this.systems.get(adapter);
    if (before !== undefined) return before;
    const range = this.attributeRange({ [ATTR_DB_SYSTEM_NAME]: systemNameOf(adapter.text) });
    if (range !== undefined) this.systems.set(adapter, range);
    return range;
  }

  private textRange(text: string): Range | undefined {
    const { scratch } = this;
    scratch.length = 0;
    scratch.reserve(3 * text.length);
    scratch.length = scratch.bytes.write(text, 0, 'utf8');
    return this.range(true);
  }

  /** @param isKept else it stands there until the next is made */
  private attributeRange(attributes: OtelAttributes, isKept = true): Range | undefined {
    const { scratch } = this;
    scratch.length = 0;
    encodeAttributes(scratch, AttributeTag.span, attributes);
    return this.range(isKept);
  }

  private range(isKept: boolean): Range | undefined {
    const { bytes, length } = this.scratch;
    if (length === 0) return NOTHING;
    if (length > MAX_MADE_BYTES) return undefined;
    bytes.copy(buffer, MADE, 0, length);
    return isKept ? texts.keep(MADE, length) : { at: MADE, length };
  }
}

function holdsText(value: OtelAttributes[string]): boolean {
  return typeof value === 'string' || Array.isArray(value);
}

/** Returns whether it may be an object or a list as a text, in which other names have other policies. */
function isJson(value: OtelAttributes[string]): boolean {
  return typeof value === 'string' && /^[[{]/.test(value);
}

/** `undefined` for a text that is no JSON. */
function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

const OPERATION = keyOf('db.operation.name');
const SUMMARY = keyOf('db.query.summary');
const COLLECTION = keyOf('db.collection.name');

const MIB = 1024 * 1024;
/** Where statements are made safe, and the value of an attribute while they are. A remembered statement is much shorter. */
const STATEMENT = REGION.scratch + 2 * MIB;
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

  /** What may be exported of a statement. Its ranges are valid until the next one is asked for; of one that is remembered, as long as that is. */
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
    if (level === 'statements' || !sanitizer.sanitize(statement.at, end, dialect, words, STATEMENT)) return undefined;
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
    const textEnd = this.level === 'off' ? STATEMENT : putText(STATEMENT, sql.text ?? sql.sha256 ?? '');
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
    const start = isOff ? textEnd : STATEMENT;
    const at = (statement.number < 0 ? undefined : texts.keep(start, end - start)?.at) ?? start;
    return {
      text: isOff ? { at: statement.at, length: statement.length } : { at, length: textEnd - STATEMENT },
      about: { at: at + textEnd - start, length: end - textEnd },
    };
  }
}

/** Writes an attribute of a span whose value stands at `VALUE`. */
function putValue(to: number, key: Range, end: number): number {
  return putTextAttribute(to, AttributeTag.span, key, VALUE, end - VALUE);
}
