import { randomInt } from 'node:crypto';
import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import { GrowingBytes, grown, HashSlots, hashOfBytes, isSameBytes } from '../../core/bytes.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../record/attributes.js';
import { ALL_FIELDS, type AttributePolicy } from '../../record/event-table.js';
import { attributePolicyOf } from '../../redaction/known-names.js';
import { NAME_ATTRIBUTES, NAMING_EVENTS, type Redactor } from '../../redaction/redactor.js';
import { isStableName } from '../mapping/event-types.js';
import { encodeAttribute, SPAN, WireWriter } from '../wire/wire-writer.js';

/**
 * Details whose fields become attributes of the span itself, under the field's own name, with the values that proto3
 * leaves out of JSON because they are zero, though they say something.
 */
const LIFTED: ReadonlyMap<string, OtelAttributes> = new Map(
  ALL_FIELDS.flatMap(([name, { lifted }]) => (lifted === undefined ? [] : [[name, lifted] as const])),
);

/** Deepest nesting that becomes attributes; what lies deeper is one JSON text. The schema's own messages have three levels. */
const MAX_DEPTH = 4;

/** Deepest nesting inside such a text; what lies deeper is `…`, so that hostile input cannot exhaust the stack. */
const MAX_JSON_DEPTH = 64;

/**
 * Writes a message's fields into attributes: scalars under their name, nested ones under dotted names (or their own name
 * where they are details of the span), lists of scalars as lists, the rest as JSON text; 64-bit integers as numbers.
 * Statements (`sql`) are not written here.
 * @param eventType what the message is. @param isLifted false keeps each nested object as one JSON text, as the engine's OTLP does.
 */
export function flattenAttributes(
  message: JsonObject,
  eventType: string,
  into: OtelAttributes,
  redactor: Redactor,
  isLifted: boolean,
): void {
  new Flattening(eventType, into, redactor, isLifted).object(message, '', '', 0);
}

class Flattening {
  constructor(
    private readonly eventType: string,
    private readonly into: OtelAttributes,
    private readonly redactor: Redactor,
    private readonly isLifted: boolean,
  ) {}

  object(object: JsonObject, prefix: string, parent: string, depth: number): void {
    for (const field in object) {
      const value = object[field];
      if (value !== undefined && value !== null && (depth > 0 || field !== 'sql')) {
        this.value(value, prefix + field, field, parent, depth);
      }
    }
  }

  private value(value: Exclude<JsonValue, null>, key: string, field: string, parent: string, depth: number): void {
    if (typeof value === 'string') {
      this.into[key] = isInt64Field(field, parent)
        ? int64Value(value)
        : this.redactor.attribute(key, value, this.eventType);
    } else if (typeof value === 'boolean') {
      this.into[key] = value;
    } else if (typeof value === 'number') {
      const shown = this.redactor.number(key, value, this.eventType);
      if (shown !== undefined && !(field === 'query_error_vendor_code' && value === NO_VENDOR_CODE))
        this.into[key] = shown;
    } else if (!isJsonObject(value)) {
      this.list(value, key);
    } else if (this.isLifted && depth < MAX_DEPTH) {
      const defaults = depth === 0 ? LIFTED.get(key) : undefined;
      if (defaults !== undefined) Object.assign(this.into, defaults);
      this.object(value, defaults === undefined ? `${key}.` : '', field, depth + 1);
    } else {
      this.into[key] = this.json(value, key);
    }
  }

  private list(list: readonly JsonValue[], key: string): void {
    const texts: string[] = [];
    for (const item of list) {
      if (typeof item !== 'string') {
        this.into[key] = this.json(list, key);
        return;
      }
      texts.push(this.redactor.attribute(key, item, this.eventType));
    }
    this.into[key] = texts;
  }

  /** JSON text, each text in it redacted as an attribute of that name would be. */
  private json(value: JsonValue, key: string): string {
    return JSON.stringify(this.redacted(value, key, 0));
  }

  private redacted(value: JsonValue, key: string, depth: number): JsonValue {
    if (typeof value === 'string') return this.redactor.attribute(key, value, this.eventType);
    if (typeof value === 'number') return this.redactor.number(key, value, this.eventType) ?? '?';
    if (value === null || typeof value === 'boolean') return value;
    if (depth >= MAX_JSON_DEPTH) return '…';
    if (!isJsonObject(value)) return value.map((item) => this.redacted(item, key, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([field, item]) => [
        field,
        this.redacted(item, this.redactedKey(key, field), depth + 1),
      ]),
    );
  }

  /** The key that a field has when its object is flattened, so that both have one policy. */
  private redactedKey(key: string, field: string): string {
    return LIFTED.has(key) ? field : `${key}.${field}`;
  }
}

/** The engine's "there is none". */
const NO_VENDOR_CODE = -2_147_483_648;

/** 64-bit integers, which JSON carries as strings; exported as OTel's int. Ids (`parent_span_id`) are left as text. */
const INT64_FIELDS: ReadonlySet<string> = new Set(
  ALL_FIELDS.flatMap(([name, { kind }]) => (kind === 'int64' && !name.endsWith('_id') ? [name] : [])),
);

/** Maps whose values are 64-bit integers. */
const INT64_MAPS: ReadonlySet<string> = new Set(
  ALL_FIELDS.flatMap(([name, { entries }]) => (entries === 'int64' ? [name] : [])),
);

/** Whether a string at this field is a 64-bit integer. @param parent the field that holds it, for the entries of maps. */
export function isInt64Field(field: string, parent: string): boolean {
  return INT64_FIELDS.has(field) || INT64_MAPS.has(parent);
}

/** The integer that a string spells; the string itself beyond what a double holds exactly. */
export function int64Value(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) && text !== '' ? value : text;
}

/** Bytes that a line is compared with, four at a time: most of a line's bytes are keys that stand where they are expected. */
export class Literal {
  readonly length: number;
  private readonly words: Int32Array;

  /** @param text ASCII, at least four characters. */
  constructor(readonly text: string) {
    const bytes = Buffer.from(text, 'latin1');
    if (bytes.length < WORD_BYTES) throw new Error(`${text} is too short to be compared by words`);
    this.length = bytes.length;
    this.words = new Int32Array(Math.ceil(bytes.length / WORD_BYTES));
    // The last word overlaps the one before where the length is no multiple.
    for (let word = 0; word < this.words.length; word++) {
      this.words[word] = bytes.readInt32LE(Math.min(word * WORD_BYTES, bytes.length - WORD_BYTES));
    }
  }

  /** Whether these bytes stand at `at`, all before `end`. */
  isAt(view: DataView, at: number, end: number): boolean {
    if (at + this.length > end) return false;
    const { words } = this;
    const last = words.length - 1;
    for (let word = 0; word < last; word++) {
      if (view.getInt32(at + word * WORD_BYTES, true) !== words[word]) return false;
    }
    return view.getInt32(at + this.length - WORD_BYTES, true) === words[last];
  }
}

const WORD_BYTES = 4;

/** Most texts that are remembered; when there are more, all are forgotten. */
const MAX_TEXTS = 16_384;

/**
 * Texts by their bytes: most values of a run come many times, and then nothing has to be made of them but a hash. The
 * strings are the same objects each time, whose own hash is known, so that looking them up in a Map is cheap as well.
 */
export class TextTable {
  private readonly slots = new HashSlots();
  private texts: string[] = [];
  private lengths: number[] = [];
  private starts: number[] = [];
  private readonly stored = new GrowingBytes(8192);
  /** Number of the text that `textOf` gave last, less than `MAX_TEXTS`; -1 for one that is too long to be remembered. */
  index = -1;
  /** How often all were forgotten: numbers are those of other texts then. */
  forgottenCount = 0;

  /**
   * @param maxBytes of texts that are remembered; when there are more, all are forgotten. @param maxTextBytes longer ones never are
   * @param seed any 32 bits, so that nobody can choose texts that all meet in one place; what comes out does not depend on it.
   */
  constructor(
    private readonly maxBytes = 1024 * 1024,
    private readonly maxTextBytes = 256,
    private readonly seed: number = randomInt(2 ** 32) | 0,
  ) {}

  /**
   * The text of these bytes: ASCII, or (where it is quoted) a JSON text.
   * @param view of `from`
   * @throws SyntaxError for a quoted text that is no JSON
   */
  textOf(from: Buffer, view: DataView, start: number, end: number): string {
    this.index = -1;
    if (end - start > this.maxTextBytes) return read(from, start, end);
    const { slots } = this;
    for (let i = slots.seek(hashOfBytes(from, view, start, end, this.seed)); i >= 0; i = slots.next()) {
      if (this.isSame(i, from, view, start, end)) return this.found(i);
    }
    return this.add(from, start, end);
  }

  private found(index: number): string {
    this.index = index;
    return this.texts[index] as string;
  }

  private isSame(index: number, from: Buffer, view: DataView, start: number, end: number): boolean {
    const length = end - start;
    if (this.lengths[index] !== length) return false;
    return isSameBytes(this.stored.source, this.starts[index] as number, from, view, start, length);
  }

  private add(from: Buffer, start: number, end: number): string {
    const text = read(from, start, end);
    if (this.texts.length >= MAX_TEXTS || this.stored.length + end - start > this.maxBytes) this.forgetAll();
    const { stored } = this;
    stored.reserve(end - start);
    this.index = this.slots.add();
    this.texts.push(text);
    this.starts.push(stored.length);
    this.lengths.push(end - start);
    for (let at = start; at < end; at++) stored.bytes[stored.length++] = from[at] as number;
    return text;
  }

  private forgetAll(): void {
    this.slots.clear();
    this.texts = [];
    this.starts = [];
    this.lengths = [];
    this.forgottenCount++;
    this.stored.length = 0;
  }
}

/** A plain text cannot begin with a quote. */
function read(from: Buffer, start: number, end: number): string {
  if (end > start && from[start] === QUOTE) return JSON.parse(from.toString('utf8', start, end)) as string;
  return from.toString('latin1', start, end);
}

const QUOTE = 0x22;

/** Which texts of a table a run was taught as names. */
export class TaughtNames {
  /** 1 for each that was, by their numbers. */
  private marks = new Uint8Array(MIN_MARKS);
  private forgottenCount = 0;

  constructor(private readonly texts: TextTable) {}

  /** Whether the text that the table gave last was not marked before; marks it. */
  isNew(): boolean {
    const { index, forgottenCount } = this.texts;
    if (index < 0) return true;
    if (forgottenCount !== this.forgottenCount) {
      this.forgottenCount = forgottenCount;
      this.marks.fill(0);
    }
    if (index >= this.marks.length) this.marks = grown(this.marks, Math.min(MAX_TEXTS, 2 * index));
    if (this.marks[index] === 1) return false;
    this.marks[index] = 1;
    return true;
  }
}

const MIN_MARKS = 1024;

/** Different event types, and attributes of one: what comes beyond is mapped as well, but slower. */
const MAX_EVENT_TYPES = 128;
const MAX_ATTRIBUTES = 256;
/** Longest name of an attribute whose length is one byte wherever it is written. */
const MAX_NAME_LENGTH = 100;

/** Statements of a run of a thousand nodes, and the longest one. */
const MAX_STATEMENTS_BYTES = 4 * 1024 * 1024;
const MAX_STATEMENT_BYTES = 16 * 1024;

/** Attributes whose value the mapping itself looks at; the others are only copied. */
export const ROLES = [
  'unique_id',
  'database',
  'schema',
  'phase',
  'last_phase',
  'adapter_type',
  'sql',
  'sql_hash',
  'query_outcome',
  'hook_outcome',
  'node_outcome',
  'node_error_type',
  'test_outcome',
  'node_test_detail',
  'node_freshness_outcome',
  'node_outcome_detail',
  'node_skip_upstream_detail',
  'rows_affected',
  'code_name',
] as const;

/** The number of a role; -1 for every other attribute. */
export function roleIndexOf(name: string): number {
  return ROLE_INDEXES.get(name) ?? -1;
}

const ROLE_INDEXES: ReadonlyMap<string, number> = new Map(ROLES.map((name, index) => [name, index]));

/** Those that the run's memory asks for as soon as a line was read; the others are looked at when the span is sent. */
const READ_AT_ONCE = new Set<string>([
  'unique_id',
  'database',
  'schema',
  'phase',
  'query_outcome',
] satisfies (typeof ROLES)[number][]);

/**
 * Names of attributes that are put together with others before they are written, since the mapping writes such names
 * itself, or because JavaScript's objects put them first.
 */
const SPECIAL_NAME =
  /^(?:event_type|error\.type|__proto__|\d+|run_bridge\..*|db\..*|test\.case\..*|body|severity_(?:text|number))$/;

/** Whether two attributes of an item may come to have this name. */
export function isSpecialName(name: string): boolean {
  return SPECIAL_NAME.test(name);
}

/** Where an attribute's first cell has the number of its mapping, and of its role plus one; below is the kind of its value. */
export const MAPPING_SHIFT = 8;
export const ROLE_SHIFT = 3;
export const ROLE_MASK = 31;
export const KIND_MASK = 7;

/** The first cell of an attribute, but for the kind of its value. @param role -1 for none */
function mappingAndRole(mapping: number, role: number): number {
  return (mapping << MAPPING_SHIFT) | ((role + 1) << ROLE_SHIFT);
}

/** How one attribute of one event type is read and exported. */
export class AttributeMapping {
  /** `"name":` */
  readonly quoted: Literal;
  readonly policy: AttributePolicy;
  readonly isInt64: boolean;
  readonly role: number;
  /** Its first cell in a line, but for the kind of its value. */
  readonly cell: number;
  /** Whether it teaches the run's names. */
  readonly isName: boolean;
  /** Whether it tells the database that statements are for. */
  readonly isAdapter: boolean;
  /** Whether a text of it is made as soon as the line was read, so that the line must not turn out to be damaged then. */
  readonly isReadAtOnce: boolean;
  /** `0a <length> name 12`: a KeyValue up to the length of its value. */
  readonly keyBytes: Buffer;
  /** The attribute that followed this one in the last start or log record, and in the last end: it mostly does in the next. */
  readonly next: [AttributeMapping | undefined, AttributeMapping | undefined] = [undefined, undefined];
  /** Number of the line that it was seen in last: the name may come twice in one. */
  lineNumber = 0;
  constructor(
    readonly index: number,
    readonly name: string,
    eventType: string,
  ) {
    this.quoted = new Literal(`"${name}":`);
    this.policy = attributePolicyOf(name, eventType);
    this.isInt64 = isInt64Field(name, '');
    this.role = roleIndexOf(name);
    this.cell = mappingAndRole(index, this.role);
    const isNaming = NAMING_EVENTS.test(eventType);
    this.isName = isNaming && NAME_ATTRIBUTES.some((one) => one === name);
    this.isAdapter = isNaming && name === 'adapter_type';
    this.isReadAtOnce = this.isName || this.isAdapter || READ_AT_ONCE.has(name);
    this.keyBytes = Buffer.concat([Buffer.from([0x0a, name.length]), Buffer.from(name, 'latin1'), Buffer.from([0x12])]);
  }
}

/** How records of one event type are read and exported. */
export class EventMapping {
  /** `<event type>","attributes":{` */
  readonly tail: Literal;
  /** The attribute `event_type`, encoded, but for its tag. */
  readonly typeAttribute: Buffer;
  /** Whether the span's name is exported as it stands. */
  readonly isNameKept: boolean;
  /** Whether its attributes may be trusted to be names. */
  readonly isNaming: boolean;
  /** Stands before the first attribute, for what follows it. */
  readonly before = { next: [undefined, undefined] as AttributeMapping['next'] };
  private readonly byName = new Map<string, AttributeMapping>();

  constructor(
    readonly index: number,
    readonly eventType: string,
    private readonly mappings: AttributeMapping[],
    /** Stands for all event types beyond those that are remembered. */
    readonly isUnknown = false,
  ) {
    this.tail = new Literal(`${eventType}","attributes":{`);
    const out = new WireWriter(128);
    encodeAttribute(out, SPAN.attributes, 'event_type', eventType);
    this.typeAttribute = out.bytes.subarray(1, out.length);
    this.isNameKept = isStableName(eventType);
    this.isNaming = NAMING_EVENTS.test(eventType);
  }

  /** The mapping of an attribute that came before. */
  knownAttribute(name: string): AttributeMapping | undefined {
    return this.byName.get(name);
  }

  /** The mapping of an attribute; `undefined` for a name that none is kept of. */
  attribute(name: string): AttributeMapping | undefined {
    const known = this.byName.get(name);
    if (known !== undefined) return known;
    const isUsual = name !== '' && name.length <= MAX_NAME_LENGTH && !SPECIAL_NAME.test(name);
    if (!isUsual || this.byName.size >= MAX_ATTRIBUTES) return undefined;
    const mapping = new AttributeMapping(this.mappings.length, name, this.eventType);
    this.mappings.push(mapping);
    this.byName.set(name, mapping);
    return mapping;
  }
}

/** How records of the event types that came are read and exported. All runs of a destination share them. */
export class EventMappings {
  readonly attributes: AttributeMapping[] = [];
  readonly events: EventMapping[] = [];
  /** Of all event types beyond those that are remembered. */
  readonly unknown = new EventMapping(0, 'unknown', this.attributes, true);
  /** Number of the line that `LineScanner` reads. */
  lineNumber = 0;
  /** Texts that lines had, of all runs: the next run of a project has mostly the same. */
  readonly texts = new TextTable();
  /** Their statements, which come at least twice: as names are learned, and as they are sent. */
  readonly statements = new TextTable(MAX_STATEMENTS_BYTES, MAX_STATEMENT_BYTES);
  private readonly byType = new Map<string, EventMapping>();

  constructor() {
    this.events.push(this.unknown);
  }

  /** Whether it takes no more event types. */
  get isFull(): boolean {
    return this.byType.size >= MAX_EVENT_TYPES;
  }

  /** `undefined` when too many different ones came. */
  event(eventType: string): EventMapping | undefined {
    const known = this.byType.get(eventType);
    if (known !== undefined) return known;
    if (this.isFull) return undefined;
    const event = new EventMapping(this.events.length, eventType, this.attributes);
    this.events.push(event);
    this.byType.set(eventType, event);
    return event;
  }
}
