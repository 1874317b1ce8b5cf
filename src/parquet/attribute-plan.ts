import { ENUM_FIELDS, mayBeSpeltOtherwise } from '../decode/spelling.js';
import { type Field, type FieldUse, readFieldValue } from './attribute-field.js';
import { ByteBuffer } from './byte-buffer.js';
import type { ByteCursor, TextSlice } from './byte-cursor.js';
import { textSlice } from './byte-cursor.js';
import { ByteSource } from './byte-source.js';
import { MESSAGE_KEY_ORDERS, ONEOF_KEY_ORDERS } from './key-order.js';
import { MESSAGE_LAYOUTS, type MessageLayout, ONEOF_FIELD, ONEOF_MEMBERS } from './message-layout.js';
import { OrderedCopy } from './ordered-copy.js';
import { OtherFields } from './other-fields.js';
import type { AttributeWriter, RowGroupColumns } from './row-group-columns.js';
import type { TextColumn } from './typed-column.js';

const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const DOCUMENTED_KEYS = ['phase', 'test_outcome'].map((name) => ByteSource.of(`"${name}":`));

/**
 * How the attributes of one event type become cells, worked out once: `spreadAttributes` on bytes. Fields are met in
 * the order of their names, in which lines have them, so each is compared with the next that the message knows. Those that
 * it does not know (a newer engine's, or a collector's on the way) go to the payload as they are.
 */
export class AttributePlan {
  private readonly fields: readonly Field[];
  /** Fields of the payload in its order; members of the oneof stand together. */
  private readonly payloadFields: readonly Field[];
  private readonly isWhole: boolean;
  private readonly wholeOrder: OrderedCopy | undefined;
  private readonly constant: { readonly column: TextColumn; readonly text: ByteSource } | undefined;
  private readonly payloadColumn: TextColumn;
  private readonly payload = new ByteBuffer();
  private readonly others = new OtherFields();
  private hasPayload = false;
  private readonly layout: MessageLayout | undefined;
  /** Lines read so far. */
  private line = 0;
  private wholeStart = 0;
  private wholeEnd = 0;

  constructor(eventType: string, columns: RowGroupColumns) {
    this.layout = MESSAGE_LAYOUTS.get(eventType);
    const order = MESSAGE_KEY_ORDERS.get(eventType);
    this.isWhole = this.layout === undefined || this.layout.columns.length + this.layout.payload.length === 0;
    this.wholeOrder = order === undefined ? undefined : new OrderedCopy(order);
    this.payloadColumn = textColumn(columns.attributeWriter('json_payload'));
    const payloadFields = this.layout === undefined ? [] : payloadFieldsOf(this.layout);
    const columnFields = this.layout === undefined ? [] : columnFieldsOf(this.layout, columns);
    this.payloadFields = payloadFields;
    // Names are ASCII, so this is the order of their bytes.
    this.fields = [...columnFields, ...payloadFields].sort((a, b) => Buffer.compare(a.key.bytes, b.key.bytes));
    const constant = this.layout?.constant;
    this.constant =
      constant === undefined
        ? undefined
        : { column: textColumn(columns.attributeWriter(constant.column)), text: ByteSource.of(constant.text) };
  }

  /** Passes the attributes; `false` where only the general reader knows what becomes of them. */
  read(cursor: ByteCursor): boolean {
    if (cursor.bytes[cursor.at] !== OBJECT) return false;
    this.payload.clear();
    return this.isWhole ? this.readWhole(cursor) : this.readFields(cursor) && this.readPayload(cursor);
  }

  /** Writes the cells of what was read last. */
  write(cursor: ByteCursor, row: number): void {
    if (this.isWhole && this.wholeOrder === undefined) {
      this.payloadColumn.append(row, cursor.source, this.wholeStart, this.wholeEnd);
      return;
    }
    for (const field of this.fields) {
      const { place, use } = field;
      if (use.to !== 'column') continue;
      if (place.foundIn === this.line) writeCell(place, use.writer, cursor, row);
      else if (use.zero !== undefined) writeZero(use.writer, use.zero, row);
    }
    this.constant?.column.append(row, this.constant.text, 0, this.constant.text.bytes.length);
    if (this.hasPayload) this.payloadColumn.append(row, this.payload.source, 0, this.payload.length);
  }

  private readWhole(cursor: ByteCursor): boolean {
    this.wholeStart = cursor.at;
    if (!cursor.value()) return false;
    this.wholeEnd = cursor.at;
    if (mayBeSpeltOtherwise(cursor.bytes.toString('latin1', this.wholeStart, this.wholeEnd))) return false;
    this.hasPayload = true;
    if (this.wholeOrder === undefined) return true;
    cursor.at = this.wholeStart;
    this.wholeOrder.append(cursor, this.payload);
    return true;
  }

  private readFields(cursor: ByteCursor): boolean {
    const { fields } = this;
    const line = ++this.line;
    this.others.clear();
    cursor.at++;
    if (cursor.bytes[cursor.at] === OBJECT_END) {
      cursor.at++;
      return true;
    }
    let previousStart = 0;
    let previousEnd = 0;
    for (let index = 0; ; ) {
      const start = cursor.at;
      const field = fields[index];
      if (field !== undefined && cursor.pass(field.key)) {
        previousEnd = cursor.at - 1;
        if (!readFieldValue(field, cursor)) return false;
        field.place.foundIn = line;
        index++;
      } else if (field !== undefined && isKeyBefore(field.key.bytes, cursor)) {
        index++;
        continue;
      } else {
        // Documentation's own fields: the general reader knows their places.
        if (DOCUMENTED_KEYS.some((key) => cursor.pass(key))) return false;
        if (this.layout?.payloadMap !== undefined || !this.others.read(cursor, previousStart, previousEnd))
          return false;
        previousEnd = this.others.keyEnd;
      }
      previousStart = start;
      const next = cursor.bytes[cursor.at++];
      if (next === OBJECT_END) return true;
      if (next !== COMMA) return false;
    }
  }

  private readPayload(cursor: ByteCursor): boolean {
    const { payload, layout, line } = this;
    const end = cursor.at;
    let hasMember = false;
    for (const { key, use, place } of this.payloadFields) {
      if (use.to === 'oneof') {
        if (place.foundIn !== line) continue;
        // A second member, which no message can hold.
        if (hasMember) return false;
        hasMember = true;
        this.separate();
        payload.appendBytes(use.head);
        if (use.order === undefined) {
          payload.appendBytes(cursor.source, place.start, place.end);
        } else {
          cursor.at = place.start;
          use.order.append(cursor, payload);
        }
        payload.appendUint8(OBJECT_END);
      } else if (use.to === 'map' && place.foundIn === line) {
        // It is the only one, and its last brace is put behind it below.
        payload.appendBytes(cursor.source, place.start, place.end - 1);
      } else if (use.to === 'payload' && (place.foundIn === line || use.zero !== undefined)) {
        this.separate();
        payload.appendBytes(key);
        if (place.foundIn === line) payload.appendBytes(cursor.source, place.start, place.end);
        else if (use.zero !== undefined) payload.appendBytes(use.zero);
      }
    }
    cursor.at = end;
    if (this.others.count > 0) {
      this.separate();
      this.others.append(cursor.source, payload);
    }
    this.hasPayload = payload.length > 0 || layout?.payloadIs === 'always';
    if (payload.length === 0) payload.appendUint8(OBJECT);
    payload.appendUint8(OBJECT_END);
    return true;
  }

  private separate(): void {
    this.payload.appendUint8(this.payload.length === 0 ? OBJECT : COMMA);
  }
}

function writeCell(place: TextSlice, writer: AttributeWriter, cursor: ByteCursor, row: number): void {
  switch (writer.kind) {
    case 'text':
      writer.column.append(row, place.isUnescaped ? cursor.unescaped.source : cursor.source, place.start, place.end);
      break;
    case 'boolean':
      writer.column.append(row, cursor.bytes[place.start] === 0x74);
      break;
    case 'uint64':
      cursor.at = place.start;
      cursor.uint64();
      writer.column.append(row, cursor.high, cursor.low);
      break;
    case 'uint32':
    case 'int32':
      cursor.at = place.start;
      writer.column.appendNumber(row, cursor.integer() ?? 0);
      break;
  }
}

function writeZero(writer: AttributeWriter, zero: ByteSource | number, row: number): void {
  if (writer.kind === 'text' && typeof zero !== 'number') writer.column.append(row, zero, 0, zero.bytes.length);
  else if ((writer.kind === 'int32' || writer.kind === 'uint32') && typeof zero === 'number') {
    writer.column.appendNumber(row, zero);
  }
}

/** Whether a field's name comes before the one at the cursor, in the order of their bytes. */
function isKeyBefore(key: Uint8Array, { bytes, at }: ByteCursor): boolean {
  for (let i = 1; i < key.length; i++) {
    const own = key[i] ?? 0;
    const other = bytes[at + i] ?? 0;
    // The quote that ends a name comes before whatever goes on in a longer one.
    if (own !== other) return own === QUOTE || (other !== QUOTE && own < other);
  }
  return false;
}

function columnFieldsOf(layout: MessageLayout, columns: RowGroupColumns): Field[] {
  return layout.columns.map(({ field, column, zero }) =>
    fieldOf(field, {
      to: 'column',
      writer: columns.attributeWriter(column),
      zero: typeof zero === 'string' ? ByteSource.of(zero) : zero,
    }),
  );
}

function payloadFieldsOf(layout: MessageLayout): Field[] {
  if (layout.payloadMap !== undefined) {
    if (layout.payload.length > 0) throw new Error('a payload is either a map or has fields');
    return [fieldOf(layout.payloadMap, { to: 'map' })];
  }
  return layout.payload.flatMap(({ field, zero, isUint64 = false }) => {
    if (field !== ONEOF_FIELD) {
      const zeroBytes = zero === undefined ? undefined : ByteSource.of(JSON.stringify(zero));
      return [fieldOf(field, { to: 'payload', zero: zeroBytes, isUint64 })];
    }
    return [...ONEOF_MEMBERS].map(([member, variant]) => {
      const order = ONEOF_KEY_ORDERS.get(member);
      return fieldOf(member, {
        to: 'oneof',
        head: ByteSource.of(`"${ONEOF_FIELD}":{"${variant}":`),
        order: order === undefined ? undefined : new OrderedCopy(order),
      });
    });
  });
}

function fieldOf(name: string, use: FieldUse): Field {
  const isEnum = ENUM_FIELDS.some((field) => field === name) && use.to !== 'oneof';
  return { key: ByteSource.of(`"${name}":`), isEnum, use, place: { ...textSlice(), foundIn: 0 } };
}

function textColumn(writer: AttributeWriter): TextColumn {
  if (writer.kind !== 'text') throw new Error('a text column was expected');
  return writer.column;
}
