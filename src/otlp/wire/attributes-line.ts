import type { FieldKind } from '../../record/event-table.js';
import { isSame, type LineBuffer } from '../../record/record-line.js';
import { CELL, type RecordPage } from '../../record/record-page.js';
import type { Severity } from '../../record/severity.js';
import { nestedJson, UNUSUAL } from '../any-value.js';
import {
  type AttributeField,
  type AttributeSchema,
  mayBeSpeltOtherwise,
  modernEnumName,
  shortEventType,
  startRuleOf,
} from '../attribute-schema.js';
import { type AttributeSlice, BOOL, INT, integerAt, STRING } from './item-slice.js';

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const OPEN_LIST = 0x5b;
/** Layouts that are remembered of a type, of up to so many attributes. */
const MAX_LAYOUTS = 8;
const MAX_LAYOUT_ATTRIBUTES = 128;
/** Values that are remembered for an enum's field. */
const MAX_KNOWN_TEXTS = 64;
/** An attribute of documentation, which the engine has in another. */
const DOCUMENTED = 'test_outcome';

/**
 * Which attributes a span or log record has, in the order in which they came. Those of one type mostly have the same, so the layout of
 * the latest one is tried first: comparing the names costs a fraction of looking each of them up and sorting them.
 */
interface AttributeLayout {
  readonly plans: readonly FieldPlan[];
  /** Indices of `plans` in the order of their names, in which they are written. Of a name that comes twice, the last one counts. */
  readonly order: readonly number[];
  /** Indices of those that are noted in the page. */
  readonly watched: readonly number[];
  /** Index of the one whose value may say that a start has all that its end has; -1 for none. */
  readonly deciding: number;
  /** Whether a name may be documentation's. */
  readonly isSuspect: boolean;
}

const NO_LAYOUT: AttributeLayout = { plans: [], order: [], watched: [], deciding: -1, isSuspect: false };

function attributeLayout(plans: readonly FieldPlan[]): AttributeLayout {
  const name = (index: number) => (plans[index] as FieldPlan).key.name;
  const order = plans
    .map((_, index) => index)
    .sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b))
    .filter((index, place, all) => place + 1 === all.length || name(all[place + 1] as number) !== name(index));
  const watched = order.filter((index) => plans[index]?.isWatched).sort((a, b) => a - b);
  const deciding = order.find((index) => plans[index]?.kind === 'enum' && plans[index]?.wholeWith.length !== 0) ?? -1;
  // `phase` is documentation's name for the last phase of a processed node.
  const isSuspect = plans.some(
    ({ key, kind }) => key.name === DOCUMENTED || (key.name === 'phase' && kind === 'unknown'),
  );
  return { plans, order, watched, deciding, isSuspect };
}

/** Whether a span or log record has these attributes, in this order. */
function isLaidOut(layout: AttributeLayout, from: Buffer, slice: AttributeSlice): boolean {
  const { plans } = layout;
  if (plans.length !== slice.count) return false;
  for (let index = 0; index < plans.length; index++) {
    const { bytes } = (plans[index] as FieldPlan).key;
    if (!isSame(bytes, from, slice.keyStart[index] as number, slice.keyEnd[index] as number)) return false;
  }
  return true;
}

/**
 * Writes attributes as the engine's JSON, from OTLP's bytes to a line's bytes: nothing becomes a string on the
 * way that need not be looked at. A span's start's attributes are written first; the end's are copied from them where the two
 * agree, which is nearly everywhere.
 */
export class AttributesLine {
  /** Of the planned span or log record. */
  private layout: AttributeLayout = NO_LAYOUT;
  /** The latest layouts of each type, the last one first: a phase that failed, or has a detail, has other attributes. */
  private readonly latest = new Map<TypePlan, AttributeLayout[]>();
  /** Where in the line attribute i stands, without its comma; -1 where the start lacks it or has another value. */
  private readonly from: number[] = [];
  private readonly to: number[] = [];

  constructor(private readonly fieldPlans: FieldPlans) {}

  /** Finds how each attribute is written, and their order. @throws UNUSUAL */
  plan(from: Buffer, slice: AttributeSlice, type: TypePlan): void {
    const latest = this.latest.get(type);
    const known = latest?.find((layout) => isLaidOut(layout, from, slice));
    this.layout = known ?? this.newLayout(from, slice, type);
    if (this.layout.isSuspect) throw UNUSUAL;
  }

  /** Whether the planned attribute is this ASCII text, or the value of an enum that has this name. */
  isText(from: Buffer, slice: AttributeSlice, name: string, text: string): boolean {
    const { plans, order } = this.layout;
    for (let place = 0; place < order.length; place++) {
      const index = order[place] as number;
      const plan = plans[index] as FieldPlan;
      if (plan.key.name !== name) continue;
      const start = slice.valueStart[index] as number;
      const end = slice.valueEnd[index] as number;
      if (plan.kind !== 'enum') return slice.valueKind[index] === STRING && isAscii(text, from, start, end);
      const json = enumJson(plan, from, slice, index);
      return json !== undefined && isAscii(text, json, 1, json.length - 1);
    }
    return false;
  }

  /** Writes `{…}` for the start. */
  writeStart(out: LineBuffer, from: Buffer, slice: AttributeSlice): void {
    const { plans, order } = this.layout;
    const isWhole = this.isStartWhole(from, slice);
    out.reserve(2);
    out.bytes[out.length++] = OPEN;
    let isFirst = true;
    for (let place = 0; place < order.length; place++) {
      const index = order[place] as number;
      const plan = plans[index] as FieldPlan;
      this.from[index] = -1;
      if (plan.isEndOnly && plan.knownValue === null && !isWhole) continue;
      const before = out.length;
      out.reserve(1);
      if (!isFirst) out.bytes[out.length++] = COMMA;
      if (plan.atStart !== null) {
        out.reserve(plan.key.quoted.length + plan.atStart.length);
        out.copy(plan.key.quoted);
        out.copy(plan.atStart);
      } else {
        const at = out.length;
        this.writeAttribute(out, from, slice, index);
        if (plan.knownValue !== null && !isSame(plan.knownValue, out.bytes, at + plan.key.quoted.length, out.length)) {
          out.length = before;
          continue;
        }
        this.from[index] = at;
        this.to[index] = out.length;
      }
      isFirst = false;
    }
    out.reserve(1);
    out.bytes[out.length++] = CLOSE;
  }

  /** Writes `{…}` for the end, after `writeStart`, and notes in the page where the watched attributes stand. */
  writeEnd(out: LineBuffer, from: Buffer, slice: AttributeSlice, page: RecordPage, cells: number): void {
    const { order } = this.layout;
    out.reserve(2);
    out.bytes[out.length++] = OPEN;
    // Attributes that stand side by side at the start are copied in one go.
    let copyFrom = -1;
    let copyTo = -1;
    for (let place = 0; place < order.length; place++) {
      const index = order[place] as number;
      const start = this.from[index] as number;
      if (start >= 0 && start === copyTo + 1) copyTo = this.to[index] as number;
      else {
        if (copyFrom >= 0) copyRange(out, copyFrom, copyTo);
        copyFrom = copyTo = -1;
        if (start >= 0) {
          copyFrom = start;
          copyTo = this.to[index] as number;
        } else {
          out.reserve(1);
          if (out.bytes[out.length - 1] !== OPEN) out.bytes[out.length++] = COMMA;
          this.from[index] = out.length;
          this.writeAttribute(out, from, slice, index);
          this.to[index] = out.length;
        }
      }
    }
    if (copyFrom >= 0) copyRange(out, copyFrom, copyTo);
    out.reserve(1);
    out.bytes[out.length++] = CLOSE;
    this.watchAll(out, page, cells);
  }

  /** Writes `{…}` for a log record: all of its attributes, which the page notes as those of an end. */
  writeAll(out: LineBuffer, from: Buffer, slice: AttributeSlice, page: RecordPage, cells: number): void {
    const { order } = this.layout;
    out.reserve(1);
    out.bytes[out.length++] = OPEN;
    for (let place = 0; place < order.length; place++) {
      const index = order[place] as number;
      out.reserve(1);
      if (place > 0) out.bytes[out.length++] = COMMA;
      this.from[index] = out.length;
      this.writeAttribute(out, from, slice, index);
      this.to[index] = out.length;
    }
    out.reserve(1);
    out.bytes[out.length++] = CLOSE;
    this.watchAll(out, page, cells);
  }

  /** Whether a value says that the span's start has all that its end has. */
  private isStartWhole(from: Buffer, slice: AttributeSlice): boolean {
    const { plans, deciding } = this.layout;
    const plan = plans[deciding];
    const json = plan && enumJson(plan, from, slice, deciding);
    return json !== undefined && plan?.wholeWith.some((one) => one.equals(json)) === true;
  }

  private watchAll(out: LineBuffer, page: RecordPage, cells: number): void {
    const { plans, watched } = this.layout;
    for (let place = 0; place < watched.length; place++) {
      const index = watched[place] as number;
      this.watch(plans[index] as FieldPlan, out, index, page.cells, cells);
    }
  }

  /** Notes where a watched attribute's value stands; in the start's line where it is copied from there: it is the same. */
  private watch(plan: FieldPlan, out: LineBuffer, index: number, cells: Uint32Array, at: number): void {
    const cell = plan.watchedAs;
    const isDetail = cell === CELL.detailStart;
    const start = (this.from[index] as number) + plan.key.quoted.length;
    if ((!isDetail && out.bytes[start] !== QUOTE) || cells[at + cell + 1] !== 0) {
      cells[at + CELL.isSpecial] = 1;
      return;
    }
    // Which detail it is, its name tells.
    cells[at + cell] = isDetail ? (this.from[index] as number) : start;
    cells[at + cell + 1] = this.to[index] as number;
  }

  private writeAttribute(out: LineBuffer, from: Buffer, slice: AttributeSlice, index: number): void {
    const plan = this.layout.plans[index] as FieldPlan;
    const start = slice.valueStart[index] as number;
    const end = slice.valueEnd[index] as number;
    out.reserve(plan.key.quoted.length + 32);
    out.copy(plan.key.quoted);
    switch (slice.valueKind[index]) {
      case STRING:
        this.writeText(out, from, start, end, plan);
        break;
      case BOOL:
        out.copy(from[start] === 0 ? FALSE : TRUE);
        break;
      case INT:
        writeInteger(out, from, start, end, plan);
        break;
    }
  }

  private newLayout(from: Buffer, slice: AttributeSlice, type: TypePlan): AttributeLayout {
    const plans: FieldPlan[] = [];
    for (let index = 0; index < slice.count; index++) {
      plans.push(type.field(this.fieldPlans.key(from, slice.keyStart[index] as number, slice.keyEnd[index] as number)));
    }
    const layout = attributeLayout(plans);
    const isKept = type.isKept && plans.length <= MAX_LAYOUT_ATTRIBUTES && plans.every(({ key }) => key.isKept);
    if (!isKept) return layout;
    if (this.latest.size >= MAX_TYPES) this.latest.clear();
    this.latest.set(type, [layout, ...(this.latest.get(type) ?? [])].slice(0, MAX_LAYOUTS));
    return layout;
  }

  private writeText(out: LineBuffer, from: Buffer, start: number, end: number, plan: FieldPlan): void {
    const first = from[start];
    if (plan.kind === 'enum') {
      const json = textJson(plan, from, start, end);
      out.reserve(json.length);
      out.copy(json);
      return;
    } else if (plan.kind === 'nested' || plan.kind === 'unknown') {
      if (end > start && (first === OPEN || first === OPEN_LIST)) {
        const text = from.toString('utf8', start, end);
        const json = nestedJson(text) ?? JSON.stringify(text);
        if (mayBeSpeltOtherwise(json)) throw UNUSUAL;
        out.utf8(json);
        return;
      }
    }
    out.jsonString(from, start, end);
  }
}

/** What was written from `from` to `to`, once more, behind a comma unless it comes first. */
function copyRange(out: LineBuffer, from: number, to: number): void {
  out.reserve(to - from + 1);
  if (out.bytes[out.length - 1] !== OPEN) out.bytes[out.length++] = COMMA;
  out.repeat(from, to);
}

function isAscii(text: string, from: Buffer, start: number, end: number): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (from[start + at] !== text.charCodeAt(at)) return false;
  return true;
}

/** The JSON of an enum's value that came as a name or as a number; `undefined` where it is neither. */
function enumJson(plan: FieldPlan, from: Buffer, slice: AttributeSlice, index: number): Buffer | undefined {
  const start = slice.valueStart[index] as number;
  const end = slice.valueEnd[index] as number;
  if (slice.valueKind[index] === STRING) return textJson(plan, from, start, end);
  return slice.valueKind[index] === INT ? Buffer.from(integerJson(plan, integerAt(from, start, end))) : undefined;
}

/** An enum's value as JSON, by its modern name. */
function textJson(plan: FieldPlan, from: Buffer, start: number, end: number): Buffer {
  return knownJson(plan, from, start, end) ?? modernJson(plan, from, start, end);
}

function knownJson(plan: FieldPlan, from: Buffer, start: number, end: number): Buffer | undefined {
  for (const { bytes, json } of plan.knownTexts) if (isSame(bytes, from, start, end)) return json;
  return undefined;
}

/** The modern name of an enum's value, as JSON; it is remembered. */
function modernJson(plan: FieldPlan, from: Buffer, start: number, end: number): Buffer {
  const value = from.toString('utf8', start, end);
  const modern = plan.field === undefined ? value : modernEnumName(value, plan.field);
  const json = Buffer.from(JSON.stringify(modern));
  if (plan.knownTexts.length < MAX_KNOWN_TEXTS && end - start <= MAX_REMEMBERED_BYTES) {
    plan.knownTexts.push({ bytes: ownBytes(from.subarray(start, end)), json: ownBytes(json) });
  }
  return json;
}

function writeInteger(out: LineBuffer, from: Buffer, start: number, end: number, plan: FieldPlan): void {
  // Small and not negative: everything that the engine sends as a number. An enum's number needs its name.
  if (end - start > 4 || plan.kind === 'enum') {
    out.utf8(integerJson(plan, integerAt(from, start, end)));
    return;
  }
  let value = 0;
  for (let index = start, shift = 0; index < end; index++, shift += 7)
    value |= ((from[index] as number) & 0x7f) << shift;
  const isText = plan.kind === 'int64';
  if (isText) out.bytes[out.length++] = QUOTE;
  out.ascii(String(value));
  if (isText) out.bytes[out.length++] = QUOTE;
}

function integerJson({ kind, field }: FieldPlan, value: bigint): string {
  if (kind === 'int64') return `"${value}"`;
  const name = kind === 'enum' ? field?.nameByNumber.get(Number(value)) : undefined;
  return name === undefined ? String(value) : JSON.stringify(name);
}

/** An attribute name that came: its bytes, and how it is written. */
export interface KnownKey {
  readonly name: string;
  readonly bytes: Buffer;
  /** `"name":` */
  readonly quoted: Buffer;
  /** Whether it is remembered; a long one is not. */
  readonly isKept: boolean;
}

/** A value that came, and the JSON that it becomes. */
export interface KnownText {
  readonly bytes: Buffer;
  readonly json: Buffer;
}

/** How one attribute of one event type is written. */
export interface FieldPlan {
  readonly key: KnownKey;
  readonly kind: FieldKind | 'unknown';
  readonly field: AttributeField | undefined;
  /** Values of an enum that came, and how each is written: most spans of a run have the same few. */
  readonly knownTexts: KnownText[];
  /** Whether a span's start lacks it. */
  readonly isEndOnly: boolean;
  /** The one value that a start has although it lacks others, as JSON; `null` where there is none. */
  readonly knownValue: Buffer | null;
  /** What the engine writes at the start instead, as JSON; `null` for the same. */
  readonly atStart: Buffer | null;
  /** JSON of its values with which the start has all that the end has. */
  readonly wholeWith: readonly Buffer[];
  /** Whether the page has to know of it. */
  readonly isWatched: boolean;
  /** The page's cell for where its value begins; -1 where it makes the span special. */
  readonly watchedAs: number;
}

/** Attributes that tell how a node ended, and the page's cells for them; see `CELL`. */
const WATCHED: ReadonlyMap<string, number> = new Map([
  ['unique_id', CELL.uniqueIdStart],
  ['node_outcome', CELL.outcomeStart],
  ['query_outcome', CELL.outcomeStart],
  ['phase', CELL.phaseStart],
  ['last_phase', CELL.phaseStart],
  ['node_test_detail', CELL.detailStart],
  ['test_outcome', CELL.detailStart],
  ['node_freshness_outcome', CELL.detailStart],
  ['node_outcome_detail', CELL.detailStart],
]);

/** Names and plans that are remembered; when a sender of ever new ones has filled the list, it begins anew. */
const MAX_KEYS = 2048;
/** A longer name, or value of an enum, is not remembered: in bytes. */
export const MAX_REMEMBERED_BYTES = 256;
export const MAX_TYPES = 256;
const MAX_FIELDS = 512;

/** How the spans or log records of one event type are written. */
export class TypePlan {
  /** `"event_type":"…","attributes":` */
  readonly eventTypeHead: Buffer;
  readonly shortType: string;
  readonly eventTypeBytes: Buffer;
  /** Starts of such spans need the general rules. */
  readonly hasSpecialStart: boolean;
  /** Whether it is remembered; one with a long name is not. */
  readonly isKept: boolean;
  private readonly fields = new Map<KnownKey, FieldPlan>();
  /** By severity, of which there are a few constant ones. */
  private readonly tails = new Map<Severity, Buffer>();

  constructor(
    readonly eventType: string,
    private readonly schema: AttributeSchema,
  ) {
    this.eventTypeBytes = Buffer.from(eventType);
    this.isKept = eventType.length <= MAX_REMEMBERED_BYTES;
    this.eventTypeHead = Buffer.from(`"event_type":${JSON.stringify(eventType)},"attributes":`);
    this.shortType = shortEventType(eventType);
    this.hasSpecialStart = startRuleOf(this.shortType).isSpecial;
  }

  /** `","severity_number":…,"severity_text":"…","event_type":"…","attributes":` */
  tail(severity: Severity): Buffer {
    let tail = this.tails.get(severity);
    if (tail === undefined) {
      const head = `","severity_number":${severity.number},"severity_text":"${severity.text}",`;
      tail = Buffer.concat([Buffer.from(head), this.eventTypeHead]);
      this.tails.set(severity, tail);
    }
    return tail;
  }

  field(key: KnownKey): FieldPlan {
    const known = this.fields.get(key);
    if (known !== undefined) return known;
    if (this.fields.size >= MAX_FIELDS) this.fields.clear();
    const field = this.schema.field(this.eventType, key.name);
    const { endOnly, knownValues, atStart, wholeWith } = startRuleOf(this.shortType);
    const json = atStart.get(key.name);
    const knownValue = knownValues.get(key.name);
    const plan: FieldPlan = {
      key,
      kind: field?.kind ?? 'unknown',
      field,
      knownTexts: [],
      isEndOnly: endOnly.has(key.name),
      knownValue: knownValue === undefined ? null : Buffer.from(knownValue),
      atStart: json === undefined ? null : Buffer.from(json),
      wholeWith: wholeWith?.name === key.name ? [...wholeWith.values].map((json) => Buffer.from(json)) : [],
      isWatched: WATCHED.has(key.name),
      watchedAs: WATCHED.get(key.name) ?? -1,
    };
    if (key.isKept) this.fields.set(key, plan);
    return plan;
  }
}

/** Remembers attribute names by their bytes, and event types by name. */
export class FieldPlans {
  private readonly keys = new Map<number, KnownKey[]>();
  private readonly types = new Map<string, TypePlan>();
  private keyCount = 0;

  constructor(private readonly schema: AttributeSchema) {}

  type(eventType: string): TypePlan {
    const known = this.types.get(eventType);
    if (known !== undefined) return known;
    if (this.types.size >= MAX_TYPES) this.types.clear();
    const plan = new TypePlan(eventType, this.schema);
    if (plan.isKept) this.types.set(eventType, plan);
    return plan;
  }

  /** The attribute name that stands at `start`. */
  key(from: Buffer, start: number, end: number): KnownKey {
    if (end - start > MAX_REMEMBERED_BYTES) return knownKey(from.subarray(start, end), false);
    let hash = end - start;
    for (let index = start; index < end; index++) hash = (Math.imul(hash, 31) + (from[index] as number)) | 0;
    const list = this.keys.get(hash);
    if (list !== undefined) for (const key of list) if (isSame(key.bytes, from, start, end)) return key;
    return this.add(hash, ownBytes(from.subarray(start, end)));
  }

  private add(hash: number, bytes: Buffer): KnownKey {
    if (this.keyCount++ >= MAX_KEYS) this.forget();
    const key = knownKey(bytes, true);
    const list = this.keys.get(hash);
    if (list === undefined) this.keys.set(hash, [key]);
    else list.push(key);
    return key;
  }

  /** The types' plans go with the names that they are by. */
  private forget(): void {
    this.keys.clear();
    this.types.clear();
    this.keyCount = 1;
  }
}

function knownKey(bytes: Buffer, isKept: boolean): KnownKey {
  const name = bytes.toString('utf8');
  return { name, bytes, quoted: ownBytes(Buffer.from(`${JSON.stringify(name)}:`)), isKept };
}

/** A copy for long: one of `Buffer.from` may be part of a pool's 8 KiB, all of which stay in memory for its sake. */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
