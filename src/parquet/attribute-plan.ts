import { ByteSource } from '../core/bytes.js';
import { ENUM_FIELDS, mayBeSpeltOtherwise } from '../otlp/attribute-schema.js';
import { type ByteCursor, type TextSlice, textSlice } from './byte-cursor.js';
import { ByteBuffer } from './bytes.js';
import { ConstantText, type TextColumn } from './column.js';
import {
  type KeyOrder,
  MESSAGE_KEY_ORDERS,
  MESSAGE_LAYOUTS,
  type MessageLayout,
  ONEOF_FIELD,
  ONEOF_KEY_ORDERS,
  ONEOF_MEMBERS,
} from './message-layout.js';
import type { AttributeWriter, RowGroupColumns } from './row-group.js';

const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const UNDERSCORE = 0x5f;
const NULL = ByteSource.of('null');
const TRUE = ByteSource.of('true');
const FALSE = ByteSource.of('false');
const DEBUG_KEYS = ['float64', 'bool', 'string', 'bytes'].map((name) => ByteSource.of(`"${name}":`));
/** Fields of the engine's documentation that the schema has elsewhere. */
const DOCUMENTED_KEYS = ['phase', 'test_outcome'].map((name) => ByteSource.of(`"${name}":`));

/** A field of a message, what becomes of it, and where the present line has it. */
interface Field {
  readonly name: string;
  /** The key with its colon, as it stands in a line. */
  readonly key: ByteSource;
  readonly isEnum: boolean;
  readonly use: FieldUse;
  /** The field that came behind it last time. */
  next: Field | undefined;
  /** The line that has it, of those that the plan has read. */
  foundIn: number;
  /** Whether its value is one for its place; others are kept in the payload, as they stand, under its name. */
  isFitting: boolean;
  readonly value: TextSlice;
  /** Of a column of numbers: the value's halves. */
  high: number;
  low: number;
}

/** What becomes of a field. */
type FieldUse =
  | { readonly to: 'column'; readonly writer: AttributeWriter; readonly zero: ConstantText | number | undefined }
  | { readonly to: 'payload'; readonly zero: ByteSource | undefined; readonly isUint64: boolean }
  /** The map whose entries are the payload. */
  | { readonly to: 'map' }
  | { readonly to: 'oneof'; readonly head: ByteSource; readonly order: OrderedCopy | undefined };

/**
 * How the attributes of one event type become cells, worked out once. Whatever has no column, or does not fit its column (a
 * text where a number belongs), is kept in `json_payload` under its own name and with its own text; an event type that
 * nobody knows goes there whole. Each field is compared with the one that came at its place last time.
 */
export class AttributePlan {
  private readonly fields: readonly Field[];
  private readonly columnFields: readonly Field[];
  /** Fields of the payload in its order; members of the oneof stand together. */
  private readonly payloadFields: readonly Field[];
  private readonly isWhole: boolean;
  private readonly wholeOrder: OrderedCopy | undefined;
  private readonly constant: { readonly column: TextColumn; readonly text: ConstantText } | undefined;
  /** The event type as a text of its column. */
  readonly eventType: ConstantText;
  private readonly payloadColumn: TextColumn;
  private readonly payload = new ByteBuffer();
  private hasPayload = false;
  /** Whether the present line has fields that do not fit their places. */
  private hasMisfits = false;
  private readonly layout: MessageLayout | undefined;
  /** The field with which the attributes began last time. */
  private first: Field | undefined;
  /** Begin and end of the entries that the message does not know, in turns. */
  private readonly others: number[] = [];
  /** Lines read so far. */
  private line = 0;
  private wholeStart = 0;
  private wholeEnd = 0;

  constructor(eventType: string, columns: RowGroupColumns) {
    this.eventType = new ConstantText(ByteSource.of(eventType));
    this.layout = MESSAGE_LAYOUTS.get(eventType);
    const order = MESSAGE_KEY_ORDERS.get(eventType);
    this.isWhole = this.layout === undefined || this.layout.columns.length + this.layout.payload.length === 0;
    this.wholeOrder = order === undefined ? undefined : new OrderedCopy(order);
    this.payloadColumn = textColumn(columns.attributeWriter('json_payload'));
    this.payloadFields = this.layout === undefined ? [] : payloadFieldsOf(this.layout);
    this.columnFields = this.layout === undefined ? [] : columnFieldsOf(this.layout, columns);
    this.fields = [...this.columnFields, ...this.payloadFields];
    const constant = this.layout?.constant;
    this.constant =
      constant === undefined
        ? undefined
        : {
            column: textColumn(columns.attributeWriter(constant.column)),
            text: new ConstantText(ByteSource.of(constant.text)),
          };
  }

  /**
   * Passes the attributes.
   * @param isModern whether they are known to be in the schema's own spelling
   * @returns `false` where they are no JSON, or may not be in that spelling
   */
  read(cursor: ByteCursor, isModern: boolean): boolean {
    if (cursor.bytes[cursor.at] !== OBJECT) return false;
    this.payload.clear();
    if (this.isWhole) return this.readWhole(cursor, isModern);
    if (!this.readFields(cursor, isModern)) return false;
    this.makePayload(cursor);
    return true;
  }

  /** Writes the cells of what was read last. */
  write(cursor: ByteCursor, row: number): void {
    if (this.isWhole && this.wholeOrder === undefined) {
      this.payloadColumn.append(row, cursor.source, this.wholeStart, this.wholeEnd);
      return;
    }
    const { columnFields, line } = this;
    for (let index = 0; index < columnFields.length; index++) {
      const field = columnFields[index];
      if (field === undefined || field.use.to !== 'column') continue;
      const { writer, zero } = field.use;
      if (field.foundIn !== line) {
        if (zero !== undefined) writeZero(writer, zero, row);
      } else if (field.isFitting) {
        writeCell(field, writer, cursor, row);
      }
    }
    this.constant?.column.appendConstant(row, this.constant.text);
    if (this.hasPayload) this.payloadColumn.append(row, this.payload.source, 0, this.payload.length);
  }

  private readWhole(cursor: ByteCursor, isModern: boolean): boolean {
    this.wholeStart = cursor.at;
    if (!cursor.value()) return false;
    this.wholeEnd = cursor.at;
    if (!isModern && mayBeSpeltOtherwise(cursor.bytes.toString('latin1', this.wholeStart, this.wholeEnd))) return false;
    this.hasPayload = true;
    if (this.wholeOrder === undefined) return true;
    cursor.at = this.wholeStart;
    this.wholeOrder.append(cursor, this.payload);
    return true;
  }

  private readFields(cursor: ByteCursor, isModern: boolean): boolean {
    const line = ++this.line;
    this.others.length = 0;
    this.hasMisfits = false;
    cursor.at++;
    if (cursor.bytes[cursor.at] === OBJECT_END) return cursor.passByte(OBJECT_END);
    let expected = this.first;
    let previous: Field | undefined;
    for (;;) {
      const start = cursor.at;
      const field = expected !== undefined && cursor.pass(expected.key) ? expected : this.find(cursor);
      if (field === undefined) {
        cursor.at = start;
        if (!isModern && DOCUMENTED_KEYS.some((key) => cursor.pass(key))) return false;
        if (!cursor.key() || !cursor.value()) return false;
        this.others.push(start, cursor.at);
      } else {
        if (!readValue(field, cursor, line, isModern)) return false;
        if (!field.isFitting) this.hasMisfits = true;
        if (field !== expected) {
          if (previous === undefined) this.first = field;
          else previous.next = field;
        }
        previous = field;
        expected = field.next;
      }
      const next = cursor.bytes[cursor.at++];
      if (next === OBJECT_END) return true;
      if (next !== COMMA) return false;
    }
  }

  /** Passes the key of a field that the message knows. */
  private find(cursor: ByteCursor): Field | undefined {
    const { fields } = this;
    const start = cursor.at;
    for (let index = 0; index < fields.length; index++) {
      const field = fields[index];
      if (field !== undefined && cursor.pass(field.key)) return field;
    }
    if (!cursor.key()) return undefined;
    const key = cursor.bytes.toString('utf8', start, cursor.at - 1);
    return key.includes('\\') ? fields.find(({ name }) => name === JSON.parse(key)) : undefined;
  }

  private makePayload(cursor: ByteCursor): void {
    const { payload, layout, line, others } = this;
    const { source } = cursor;
    const end = cursor.at;
    let member: Field | undefined;
    for (const field of this.payloadFields) {
      const { use, value } = field;
      const isThere = field.foundIn === line && field.isFitting;
      if (use.to === 'payload') {
        if (!isThere && use.zero === undefined) continue;
        // The members' own name, which no message has.
        if (member !== undefined && field.name === ONEOF_FIELD) continue;
        this.separate();
        payload.appendBytes(field.key);
        if (isThere) payload.appendBytes(source, value.start, value.end);
        else if (use.zero !== undefined) payload.appendBytes(use.zero);
      } else if (isThere && use.to === 'oneof' && member !== undefined) {
        this.hasMisfits = true;
      } else if (isThere && use.to === 'oneof') {
        member = field;
        this.separate();
        payload.appendBytes(use.head);
        cursor.at = value.start;
        if (use.order === undefined) payload.appendBytes(source, value.start, value.end);
        else use.order.append(cursor, payload);
        payload.appendUint8(OBJECT_END);
      } else if (isThere && use.to === 'map' && value.end - value.start > 2) {
        // Its entries, without its braces.
        this.separate();
        payload.appendBytes(source, value.start + 1, value.end - 1);
      }
    }
    for (const field of this.hasMisfits ? this.fields : []) {
      // No message can hold a second member.
      const isLeft = field.foundIn === line && (!field.isFitting || (field.use.to === 'oneof' && field !== member));
      if (!isLeft) continue;
      this.separate();
      payload.appendBytes(field.key);
      payload.appendBytes(source, field.value.start, field.value.end);
    }
    for (let index = 0; index < others.length; index += 2) {
      this.separate();
      payload.appendBytes(source, others[index], others[index + 1]);
    }
    this.hasPayload = payload.length > 0 || layout?.payloadIs === 'always';
    if (payload.length === 0) payload.appendUint8(OBJECT);
    payload.appendUint8(OBJECT_END);
    cursor.at = end;
  }

  private separate(): void {
    this.payload.appendUint8(this.payload.length === 0 ? OBJECT : COMMA);
  }
}

/** Plans kept; those of further event types, which nobody knows, are worked out again each time. */
const MAX_PLANS = 256;
const SLOTS = 256;

interface KnownPlan {
  readonly eventType: Buffer;
  readonly plan: AttributePlan;
}

/** The plan of each event type, found by the bytes of its name. */
export class AttributePlans {
  private readonly plans = new Map<string, KnownPlan>();
  /** The plan that was found last for names that look alike: no text has to be made for these. */
  private readonly slots: (KnownPlan | undefined)[] = new Array(SLOTS).fill(undefined);

  constructor(private readonly columns: RowGroupColumns) {}

  /** The plan for the event type in `bytes` from `start` to `end`. */
  find(bytes: Buffer, start: number, end: number): AttributePlan {
    const slot = slotOf(bytes, start, end);
    const known = this.slots[slot];
    if (known !== undefined && isEqual(known.eventType, bytes, start, end)) return known.plan;
    const found = this.findByText(bytes.toString('utf8', start, end));
    this.slots[slot] = found;
    return found.plan;
  }

  private findByText(eventType: string): KnownPlan {
    const known = this.plans.get(eventType);
    if (known !== undefined) return known;
    const made = { eventType: Buffer.from(eventType), plan: new AttributePlan(eventType, this.columns) };
    if (this.plans.size < MAX_PLANS) this.plans.set(eventType, made);
    return made;
  }
}

/** Names differ in length and in letters of their last word. */
function slotOf(bytes: Buffer, start: number, end: number): number {
  const letters = (bytes[end - 1] ?? 0) + 3 * (bytes[end - 4] ?? 0) + 7 * (bytes[end - 8] ?? 0);
  return (letters + 31 * (end - start)) % SLOTS;
}

function isEqual(expected: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (expected.length !== end - start) return false;
  // From the end: event types begin alike.
  for (let i = expected.length - 1; i >= 0; i--) if (expected[i] !== bytes[start + i]) return false;
  return true;
}

/** Passes a field's value and notes where it is, and whether it fits its place. */
function readValue(field: Field, cursor: ByteCursor, line: number, isModern: boolean): boolean {
  const { bytes, at } = cursor;
  const { use, value } = field;
  // A field that is null counts as left out.
  field.foundIn = bytes[at] === 0x6e ? 0 : line;
  if (field.foundIn === 0) return cursor.pass(NULL);
  if (!isModern && field.isEnum && bytes[at] === QUOTE && !isNameOfEnum(bytes, at + 1)) return false;
  if (use.to === 'column') {
    field.isFitting = readCell(field, use.writer.kind, cursor);
    if (field.isFitting) return true;
    cursor.at = at;
  } else if (use.to === 'map') {
    field.isFitting = passDebugMap(cursor);
    cursor.at = at;
  } else {
    field.isFitting = use.to === 'payload' || bytes[at] === OBJECT;
  }
  if (!cursor.value()) return false;
  value.start = at;
  value.end = cursor.at;
  if (use.to === 'payload' && use.isUint64) unquoteCount(bytes, value);
  return isModern || use.to !== 'oneof' || !mayBeSpeltOtherwise(bytes.toString('latin1', at, cursor.at));
}

/** Whether a text begins as the names of the schema's enums do, `NODE_OUTCOME_…`: what `mayBeSpeltOtherwise` looks for. */
function isNameOfEnum(bytes: Uint8Array, start: number): boolean {
  let at = start;
  while (isCapital(bytes[at])) at++;
  return at > start && bytes[at] === UNDERSCORE && isCapital(bytes[at + 1]);
}

function isCapital(byte = 0): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** Passes an object that maps names to `DebugValue`s, each an object with at most one field, named after its type. */
function passDebugMap(cursor: ByteCursor): boolean {
  if (!cursor.passByte(OBJECT)) return false;
  if (cursor.bytes[cursor.at] === OBJECT_END) return cursor.passByte(OBJECT_END);
  for (;;) {
    if (!cursor.key() || !cursor.passByte(OBJECT)) return false;
    if (DEBUG_KEYS.some((key) => cursor.pass(key)) && !cursor.value()) return false;
    if (!cursor.passByte(OBJECT_END)) return false;
    const next = cursor.bytes[cursor.at++];
    if (next === OBJECT_END) return true;
    if (next !== COMMA) return false;
  }
}

/** Takes the quotes off a count, which is a number in the payload as long as every reader holds it exactly. */
function unquoteCount(bytes: Uint8Array, value: TextSlice): void {
  const start = value.start + 1;
  const end = value.end - 1;
  if (bytes[value.start] !== QUOTE || end <= start || (bytes[start] === 0x30 && end > start + 1)) return;
  let count = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return;
    count = count * 10 + digit;
  }
  if (!Number.isSafeInteger(count)) return;
  value.start = start;
  value.end = end;
}

/** Passes a value if it is one of the column's kind. */
function readCell(field: Field, kind: AttributeWriter['kind'], cursor: ByteCursor): boolean {
  switch (kind) {
    case 'text':
      return cursor.text(field.value);
    case 'boolean': {
      const isTrue = cursor.pass(TRUE);
      field.low = isTrue ? 1 : 0;
      return isTrue || cursor.pass(FALSE);
    }
    case 'uint64':
      return readUint64(field, cursor);
    case 'uint32':
    case 'int32': {
      const number = cursor.number();
      field.low = number >>> 0;
      return number === (kind === 'uint32' ? number >>> 0 : number | 0);
    }
  }
}

/** Passes a number of 64 bits: digits in quotes, or a number that JavaScript holds exactly. */
function readUint64(field: Field, cursor: ByteCursor): boolean {
  const { bytes, at } = cursor;
  if (bytes[at] === QUOTE) {
    cursor.at++;
    // Needless zeros make it a text.
    if (!cursor.uint64() || (bytes[at + 1] === 0x30 && cursor.at > at + 2)) return false;
    field.high = cursor.high;
    field.low = cursor.low;
    return cursor.passByte(QUOTE);
  }
  const number = cursor.number();
  field.high = Math.floor(number / 4294967296);
  field.low = number >>> 0;
  return number >= 0 && Number.isSafeInteger(number);
}

function writeCell(field: Field, writer: AttributeWriter, cursor: ByteCursor, row: number): void {
  const { value } = field;
  switch (writer.kind) {
    case 'text':
      writer.column.append(row, value.isUnescaped ? cursor.unescaped.source : cursor.source, value.start, value.end);
      break;
    case 'boolean':
      writer.column.append(row, field.low === 1);
      break;
    case 'uint64':
      writer.column.append(row, field.high, field.low);
      break;
    case 'uint32':
    case 'int32':
      writer.column.append(row, 0, field.low);
      break;
  }
}

function writeZero(writer: AttributeWriter, zero: ConstantText | number, row: number): void {
  if (writer.kind === 'text' && typeof zero !== 'number') writer.column.appendConstant(row, zero);
  else if ((writer.kind === 'int32' || writer.kind === 'uint32') && typeof zero === 'number') {
    writer.column.append(row, 0, zero);
  }
}

function columnFieldsOf(layout: MessageLayout, columns: RowGroupColumns): Field[] {
  return layout.columns.map(({ field, column, zero }) =>
    fieldOf(field, {
      to: 'column',
      writer: columns.attributeWriter(column),
      zero: typeof zero === 'string' ? new ConstantText(ByteSource.of(zero)) : zero,
    }),
  );
}

function payloadFieldsOf(layout: MessageLayout): Field[] {
  const map = layout.payloadMap === undefined ? [] : [fieldOf(layout.payloadMap, { to: 'map' })];
  const fields = layout.payload.flatMap(({ field, zero, isUint64 = false }) => {
    if (field !== ONEOF_FIELD) {
      const zeroBytes = zero === undefined ? undefined : ByteSource.of(JSON.stringify(zero));
      return [fieldOf(field, { to: 'payload', zero: zeroBytes, isUint64 })];
    }
    const members = [...ONEOF_MEMBERS].map(([member, variant]) => {
      const order = ONEOF_KEY_ORDERS.get(member);
      return fieldOf(member, {
        to: 'oneof',
        head: ByteSource.of(`"${ONEOF_FIELD}":{"${variant}":`),
        order: order === undefined ? undefined : new OrderedCopy(order),
      });
    });
    return [...members, fieldOf(ONEOF_FIELD, { to: 'payload', zero: undefined, isUint64: false })];
  });
  return [...map, ...fields];
}

function fieldOf(name: string, use: FieldUse): Field {
  return {
    name,
    key: ByteSource.of(`"${name}":`),
    isEnum: ENUM_FIELDS.has(name) && use.to !== 'oneof',
    use,
    next: undefined,
    foundIn: 0,
    isFitting: false,
    value: textSlice(),
    high: Number.NaN,
    low: Number.NaN,
  };
}

function textColumn(writer: AttributeWriter): TextColumn {
  if (writer.kind !== 'text') throw new Error('a text column was expected');
  return writer.column;
}

const LIST = 0x5b;
const LIST_END = 0x5d;

/** A key with its colon, as it stands in a line, and the order of the object that it may hold. */
interface OrderedKey {
  readonly bytes: ByteSource;
  readonly order: OrderedCopy | null;
}

/** Copies JSON objects with their keys in an order; those that the order does not know follow as they came. */
class OrderedCopy {
  private readonly keys: readonly OrderedKey[];
  /** Where the values of `keys` are in the object that is copied; -1 where one is missing. */
  private readonly starts: Int32Array;
  private readonly ends: Int32Array;

  constructor(order: KeyOrder) {
    this.keys = Object.entries(order).map(([key, inner]) => ({
      bytes: ByteSource.of(`"${key}":`),
      order: inner === null ? null : new OrderedCopy(inner),
    }));
    this.starts = new Int32Array(this.keys.length);
    this.ends = new Int32Array(this.keys.length);
  }

  /**
   * Appends the value at the cursor, which `ByteCursor.value` has passed before, and passes it: an object, or the objects of
   * a list, in the order. Orders do not hold themselves, so an object within this one uses another order's places.
   */
  append(cursor: ByteCursor, out: ByteBuffer): void {
    const { bytes } = cursor;
    if (bytes[cursor.at] === LIST && bytes[cursor.at + 1] !== LIST_END) {
      do {
        out.appendUint8(bytes[cursor.at++] ?? 0);
        this.appendItem(cursor, out);
      } while (bytes[cursor.at] === COMMA);
      cursor.at++;
      out.appendUint8(LIST_END);
    } else {
      this.appendItem(cursor, out);
    }
  }

  private appendItem(cursor: ByteCursor, out: ByteBuffer): void {
    if (cursor.bytes[cursor.at] === OBJECT) {
      this.appendObject(cursor, out);
      return;
    }
    const start = cursor.at;
    cursor.value();
    out.appendBytes(cursor.source, start, cursor.at);
  }

  private appendObject(cursor: ByteCursor, out: ByteBuffer): void {
    const others = this.find(cursor);
    const end = cursor.at;
    const begin = out.length;
    this.keys.forEach(({ bytes: key, order }, index) => {
      const start = this.starts[index] ?? -1;
      if (start < 0) return;
      out.appendUint8(out.length === begin ? OBJECT : COMMA);
      out.appendBytes(key);
      if (order === null) {
        out.appendBytes(cursor.source, start, this.ends[index]);
      } else {
        cursor.at = start;
        order.append(cursor, out);
      }
    });
    for (const { start, end } of others) {
      out.appendUint8(out.length === begin ? OBJECT : COMMA);
      out.appendBytes(cursor.source, start, end);
    }
    if (out.length === begin) out.appendUint8(OBJECT);
    out.appendUint8(OBJECT_END);
    cursor.at = end;
  }

  /** Finds the values of the keys, and the entries that the order does not know; passes the object. */
  private find(cursor: ByteCursor): { readonly start: number; readonly end: number }[] {
    const { bytes } = cursor;
    const others: { start: number; end: number }[] = [];
    this.starts.fill(-1);
    do {
      const start = ++cursor.at;
      if (bytes[start] === OBJECT_END) break;
      const index = this.keys.findIndex((key) => cursor.pass(key.bytes));
      if (index < 0) cursor.key();
      const valueStart = cursor.at;
      cursor.value();
      if (index < 0) {
        others.push({ start, end: cursor.at });
      } else {
        this.starts[index] = valueStart;
        this.ends[index] = cursor.at;
      }
    } while (bytes[cursor.at] === COMMA);
    cursor.at++;
    return others;
  }
}
