import type { AttributePolicy } from '../../record/event-table.js';
import { attributePolicyOf } from '../../redaction/redaction-policy.js';
import { NAME_ATTRIBUTES, NAMING_EVENTS } from '../../redaction/redactor.js';
import { isStableName } from '../mapping/event-types.js';
import { isInt64Field } from '../mapping/flatten-attributes.js';
import { SPAN } from '../wire/encode-items.js';
import { encodeAttribute, WireWriter } from '../wire/wire-writer.js';
import { Literal, TextTable } from './text-table.js';

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
