import { type Constants, isSame, LAYOUT_CONSTANTS, type Range, textAt, view } from '../../record/arena.js';
import { Attribute, attributeAt, cell, isText, MAX_ATTRIBUTES } from '../../record/cells.js';
import { DEBUG, INFO, type Severity } from '../../record/severity.js';
import {
  type AttributeField,
  type AttributeSchema,
  modernEnumName,
  NAME_BEGINNINGS,
  shortEventType,
  spanSeverity,
  startRuleOf,
} from '../attribute-schema.js';
import { BRIDGE_PREFIX } from '../bridge-attributes.js';

/** Which values of an attribute are not written as they came. */
export const Form = {
  plain: 0,
  enum: 1,
  /** A text may be JSON. */
  nested: 2,
  /** An integer is written as a text. */
  int64: 3,
} as const;

/** A value of an enum that came: most spans of a run have the same few. */
interface KnownValue {
  readonly raw: Range;
  /** Its last four bytes; 0 where it has less. */
  readonly tail: number;
  /** With its quotes. */
  readonly json: Range;
  readonly quoted: string;
  readonly name: string;
}

/** What a KeyValue begins with: its key, and the tag of its value. @param name at most 127 bytes */
export function keyText(name: string): string {
  return `\n${String.fromCharCode(Buffer.byteLength(name))}${name}\x12`;
}

/** How one attribute of one event type is written. */
export class AttributeLayout {
  readonly key: Range;
  /** What its KeyValue begins with, see `keyText`. */
  readonly keyHead: Range;
  /** `,"name":"` */
  readonly quoted: Range;
  readonly form: number;
  /** Whether a span's start lacks it, unless it has the one value that is known then. */
  readonly isEndOnly: boolean;
  /** That value, as JSON. */
  readonly knownAtStart: Range | undefined;
  /** `,"name":value` as the engine writes it at the start instead, and the value alone. */
  readonly atStart: Range | undefined;
  readonly valueAtStart: string | undefined;
  /** One of `Role`; -1 for none. */
  readonly role: number;
  /** Whether plain code has to look at it: a bridge or documentation may have called it so. */
  readonly isSuspect: boolean;
  private readonly values: KnownValue[] = [];

  constructor(
    readonly name: string,
    eventType: string,
    private readonly field: AttributeField | undefined,
    private readonly constants: Constants,
  ) {
    const json = JSON.stringify(name);
    this.keyHead = constants.add(keyText(name));
    this.key = { at: this.keyHead.at + 2, length: this.keyHead.length - 3 };
    this.quoted = constants.add(`,${json}:"`);
    const kind = field?.kind ?? 'unknown';
    this.form = FORMS.get(kind) ?? Form.plain;
    const { endOnly, knownValues, atStart } = startRuleOf(shortEventType(eventType));
    this.isEndOnly = endOnly.has(name);
    const known = knownValues.get(name);
    this.knownAtStart = known === undefined ? undefined : constants.add(known);
    const value = atStart.get(name);
    this.valueAtStart = value;
    this.atStart = value === undefined ? undefined : constants.add(`,${json}:${value}`);
    this.role = ROLES.get(name) ?? -1;
    this.isSuspect =
      !USUAL_NAME.test(name) ||
      name.startsWith(BRIDGE_PREFIX) ||
      name === 'test_outcome' ||
      (name === 'phase' && kind === 'unknown');
  }

  /** The enum's value that stands there; `undefined` where it is none, or not spelt as the schema spells it. */
  valueAt(start: number, end: number): KnownValue | undefined {
    const length = end - start;
    // Names of an enum begin alike: their ends tell them apart.
    const tail = length < 4 ? 0 : view.getInt32(end - 4, true);
    for (const value of this.values) {
      if (value.tail === tail && value.raw.length === length && isSame(value.raw.at, start, length)) return value;
    }
    return this.newValue(start, end, tail);
  }

  private newValue(start: number, end: number, tail: number): KnownValue | undefined {
    const { constants, field } = this;
    const isFull = this.values.length >= MAX_KNOWN_VALUES || !constants.hasRoom(1024);
    if (field === undefined || end - start > MAX_VALUE_BYTES || isFull) return undefined;
    const name = textAt(start, end);
    if (!/^\w+$/.test(name) || modernEnumName(name, field) !== name) return undefined;
    const quoted = JSON.stringify(name);
    const value = { raw: constants.add(name), tail, json: constants.add(quoted), name, quoted };
    this.values.push(value);
    return value;
  }
}

const FORMS: ReadonlyMap<string, number> = new Map([
  ['enum', Form.enum],
  ['nested', Form.nested],
  ['unknown', Form.nested],
  ['int64', Form.int64],
]);

/** What attributes tell of a node: which one it is, how it ended, in which phase, and what else that depends on. */
export const Role = { uniqueId: 0, outcome: 1, phase: 2, detail: 3 } as const;

const ROLES: ReadonlyMap<string, number> = new Map([
  ['unique_id', Role.uniqueId],
  ['node_outcome', Role.outcome],
  ['query_outcome', Role.outcome],
  ['phase', Role.phase],
  ['last_phase', Role.phase],
  ['node_test_detail', Role.detail],
  ['node_freshness_outcome', Role.detail],
  ['node_outcome_detail', Role.detail],
]);

/** Names that need no escape, and that a record's bytes have as long as its text. */
const USUAL_NAME = /^[\w.-]{1,100}$/;
const MAX_KNOWN_VALUES = 64;
const MAX_VALUE_BYTES = 256;

/** A stretch of attributes, in the order in which lines have them. */
export interface Stretch {
  /** Whether the start has them as the end does, so that the end's are copied from there. */
  readonly isShared: boolean;
  readonly from: number;
  readonly to: number;
}

/**
 * The attributes of a record: which, and in which order they came. Records of a type have a handful of layouts, so all
 * that follows from the names alone is found out once.
 */
export class Layout {
  /** Whether lines can be written of it: its attributes stand in the order of their names, and each says what it says. */
  readonly isUsual: boolean;
  /** Of each attribute three numbers: where `,"name":"` stands, its length without the last quote, and its form. */
  readonly codes: Int32Array;
  /** Index of the attribute of each `Role`; -1 for none. */
  readonly roles: Int32Array;
  /** Whether two attributes have one role: then only its records tell. */
  readonly hasOddRoles: boolean;
  /** Index of what says whether a node was selected; -1 for none, as in what follows. */
  readonly inSelection: number;
  /** Index of the phase of an evaluated node. */
  readonly phase: number;
  /** Index of the one with whose value a start may have all that its end has. */
  private readonly deciding: number;
  /** Index of the one whose value a start may know. */
  private readonly known: number;
  private readonly variants: (readonly Stretch[] | undefined)[] = [];

  constructor(
    readonly number: number,
    readonly event: EventLayout,
    readonly attributes: readonly AttributeLayout[],
  ) {
    const isSorted = attributes.every(({ name }, at) => at === 0 || (attributes[at - 1]?.name ?? '') < name);
    this.isUsual = isSorted && attributes.length <= MAX_ATTRIBUTES && !attributes.some(({ isSuspect }) => isSuspect);
    this.codes = Int32Array.from(attributes.flatMap(({ quoted, form }) => [quoted.at, quoted.length - 1, form]));
    this.roles = Int32Array.from(Object.values(Role), (role) => attributes.findIndex((one) => one.role === role));
    this.hasOddRoles = attributes.some(({ role }, at) => role >= 0 && this.roles[role] !== at);
    this.inSelection = attributes.findIndex(({ name }) => name === 'in_selection');
    this.phase = event.isEvaluated ? attributes.findIndex(({ name }) => name === 'phase') : -1;
    this.deciding = attributes.findIndex(({ name }) => name === event.wholeWith?.name);
    this.known = attributes.findIndex(({ knownAtStart }) => knownAtStart !== undefined);
  }

  /** What a start has of the attributes of the span that is looked at. */
  stretches(): readonly Stretch[] {
    if (this.deciding < 0 && this.known < 0) return this.variant(false, false);
    return this.variant(this.isWhole(), this.isKnown());
  }

  /** The enum's value that an attribute of the span that is looked at has; `undefined` for none, and where it is no text. */
  valueOf(index: number): KnownValue | undefined {
    const attribute = this.attributes[index];
    if (attribute === undefined || !isText(index)) return undefined;
    const at = attributeAt(index);
    return attribute.valueAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd));
  }

  private isWhole(): boolean {
    const value = this.valueOf(this.deciding);
    return value !== undefined && this.event.wholeWith?.values.has(value.quoted) === true;
  }

  private isKnown(): boolean {
    const json = this.valueOf(this.known)?.json;
    const wanted = this.attributes[this.known]?.knownAtStart;
    if (json === undefined || wanted === undefined) return false;
    return json.length === wanted.length && isSame(json.at, wanted.at, wanted.length);
  }

  private variant(isWhole: boolean, isKnown: boolean): readonly Stretch[] {
    const number = (isWhole ? 1 : 0) + (isKnown ? 2 : 0);
    const found = this.variants[number] ?? this.newStretches(isWhole, isKnown);
    this.variants[number] = found;
    return found;
  }

  private newStretches(isWhole: boolean, isKnown: boolean): readonly Stretch[] {
    const stretches: Stretch[] = [];
    for (const [at, { isEndOnly, atStart }] of this.attributes.entries()) {
      const isMissing = isEndOnly && !isWhole && !(at === this.known && isKnown);
      const isShared = !isMissing && atStart === undefined;
      const last = stretches.at(-1);
      if (last?.isShared === isShared) stretches[stretches.length - 1] = { ...last, to: at + 1 };
      else stretches.push({ isShared, from: at, to: at + 1 });
    }
    return stretches;
  }
}

/** An attribute's name behind others that came before it: mostly the one that followed last follows again. */
export class KeyStep {
  /** The one that followed last. */
  next: KeyStep | undefined;
  private readonly others: KeyStep[] = [];
  private known: Layout | undefined;

  constructor(
    private readonly event: EventLayout,
    private readonly before: KeyStep | undefined,
    readonly attribute: AttributeLayout | undefined,
    readonly keyAt: number,
    readonly keyLength: number,
  ) {}

  /** The step of the key that stands there; `undefined` where no more are remembered. */
  follow(start: number, length: number): KeyStep | undefined {
    const { next } = this;
    if (next !== undefined && next.keyLength === length && isSame(next.keyAt, start, length)) return next;
    this.next = this.otherStep(start, length) ?? this.newStep(start, length);
    return this.next;
  }

  /** The layout of a record whose last attribute this is. */
  get layout(): Layout {
    this.known ??= this.event.layouts.add(this.event, this.attributes());
    return this.known;
  }

  private otherStep(start: number, length: number): KeyStep | undefined {
    for (const one of this.others) if (one.keyLength === length && isSame(one.keyAt, start, length)) return one;
    return undefined;
  }

  private newStep(start: number, length: number): KeyStep | undefined {
    const attribute = this.event.attributeAt(start, length);
    if (attribute === undefined || !this.event.layouts.takeStep()) return undefined;
    const step = new KeyStep(this.event, this, attribute, attribute.key.at, length);
    this.others.push(step);
    return step;
  }

  private attributes(): AttributeLayout[] {
    const found: AttributeLayout[] = [];
    for (let step: KeyStep | undefined = this; step?.attribute !== undefined; step = step.before) {
      found.push(step.attribute);
    }
    return found.reverse();
  }
}

/** What is constant about records of one event type. */
export class EventLayout {
  readonly first: KeyStep;
  /** `","severity_number":…,"severity_text":"…"` of spans; two for evaluated nodes, whose phase decides. */
  readonly infoSeverity: Range;
  readonly usualSeverity: Range;
  readonly severity: Severity;
  /** `,"event_type":"…","attributes":` */
  readonly typeHead: Range;
  readonly typeName: Range;
  readonly isEvaluated: boolean;
  readonly wholeWith: { readonly name: string; readonly values: ReadonlySet<string> } | undefined;
  private readonly attributes = new Map<string, AttributeLayout>();

  constructor(
    readonly layouts: Layouts,
    readonly eventType: string,
  ) {
    const { constants } = layouts;
    const shortType = shortEventType(eventType);
    this.first = new KeyStep(this, undefined, undefined, 0, 0);
    this.typeHead = constants.add(`,"event_type":${JSON.stringify(eventType)},"attributes":`);
    this.typeName = constants.add(eventType);
    this.isEvaluated = shortType === 'node.NodeEvaluated';
    this.wholeWith = startRuleOf(shortType).wholeWith;
    this.severity = this.isEvaluated ? DEBUG : spanSeverity(shortType, () => false);
    this.infoSeverity = constants.add(severityHead(INFO));
    this.usualSeverity = constants.add(severityHead(this.severity));
  }

  attributeAt(start: number, length: number): AttributeLayout | undefined {
    const name = textAt(start, start + length);
    const known = this.attributes.get(name);
    if (known !== undefined) return known;
    const { constants, schema } = this.layouts;
    if (length > MAX_KEY_BYTES || !constants.hasRoom(1024)) return undefined;
    const made = new AttributeLayout(name, this.eventType, schema.field(this.eventType, name), constants);
    this.attributes.set(name, made);
    return made;
  }
}

function severityHead({ number, text }: Severity): string {
  return `","severity_number":${number},"severity_text":"${text}"`;
}

const MAX_KEY_BYTES = 127;
const MAX_EVENTS = 256;
/** Names behind others that are remembered; with half of them all are forgotten before the next request. */
const MAX_STEPS = 8192;
const MAX_TYPE_BYTES = 256;
/** Less is no room: a request may need so much. */
const MIN_ROOM_BYTES = 1024 * 1024;

/** How spans begin, and what they are then. */
interface Beginning {
  readonly range: Range;
  readonly eventType: string;
  event: EventLayout | undefined;
}

/** All layouts, made as event types and names come. When a sender of ever new ones has filled the room for them, all are forgotten. */
export class Layouts {
  readonly constants: Constants = LAYOUT_CONSTANTS;
  private all: Layout[] = [];
  private beginnings: readonly Beginning[] = [];
  private logs: EventLayout[] = [];
  /** What came last. */
  private latest: Beginning | undefined;
  private latestLog: EventLayout | undefined;
  private stepCount = 0;
  private generation = 0;
  /** How often all were forgotten: a number is that of another layout then. */
  forgottenCount = 0;

  constructor(readonly schema: AttributeSchema) {
    this.forget();
  }

  layout(number: number): Layout {
    return this.all[number] as Layout;
  }

  /** Makes room where there is none. No cells that name a layout may be in use. */
  tidy(): void {
    const { constants } = this;
    if (!constants.hasRoom(MIN_ROOM_BYTES)) constants.clear();
    const isFull = 2 * this.stepCount >= MAX_STEPS || 2 * this.logs.length >= MAX_EVENTS;
    if (isFull || constants.generation !== this.generation) this.forget();
  }

  takeStep(): boolean {
    this.stepCount += 1;
    return this.stepCount <= MAX_STEPS;
  }

  add(event: EventLayout, attributes: readonly AttributeLayout[]): Layout {
    const layout = new Layout(this.all.length, event, attributes);
    this.all.push(layout);
    return layout;
  }

  /** The event type of a span with this name; `undefined` where its beginning does not tell, or plain code knows more of it. */
  ofSpan(start: number, end: number): EventLayout | undefined {
    const { latest } = this;
    if (latest !== undefined && begins(latest.range, start, end)) return latest.event;
    for (const beginning of this.beginnings) {
      if (!begins(beginning.range, start, end)) continue;
      beginning.event ??= new EventLayout(this, beginning.eventType);
      this.latest = beginning;
      return beginning.event;
    }
    return undefined;
  }

  /** The event type of a log record; `undefined` where it is not remembered. */
  ofLog(start: number, end: number): EventLayout | undefined {
    const { latestLog } = this;
    if (latestLog !== undefined && isWhole(latestLog.typeName, start, end)) return latestLog;
    this.latestLog = this.otherLog(start, end) ?? this.newLog(start, end);
    return this.latestLog;
  }

  private otherLog(start: number, end: number): EventLayout | undefined {
    for (const log of this.logs) if (isWhole(log.typeName, start, end)) return log;
    return undefined;
  }

  private newLog(start: number, end: number): EventLayout | undefined {
    const isKept = start < end && end - start <= MAX_TYPE_BYTES && this.logs.length < MAX_EVENTS;
    if (!isKept || !this.constants.hasRoom(2048)) return undefined;
    const eventType = textAt(start, end);
    if (!/^[\w.]+$/.test(eventType)) return undefined;
    const event = new EventLayout(this, eventType);
    this.logs.push(event);
    return event;
  }

  private forget(): void {
    this.forgottenCount += 1;
    this.generation = this.constants.generation;
    this.all = [];
    this.logs = [];
    this.latest = this.latestLog = undefined;
    this.stepCount = 0;
    this.beginnings = NAME_BEGINNINGS.filter(({ eventType }) => !startRuleOf(shortEventType(eventType)).isSpecial).map(
      ({ beginning, eventType }) => ({ range: this.constants.add(beginning), eventType, event: undefined }),
    );
  }
}

function isWhole(range: Range, start: number, end: number): boolean {
  return end - start === range.length && isSame(range.at, start, range.length);
}

function begins(range: Range, start: number, end: number): boolean {
  return end - start >= range.length && isSame(range.at, start, range.length);
}
