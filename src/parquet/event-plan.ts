import { ByteSource } from '../core/bytes.js';
import type { JsonValue } from '../record/attributes.js';
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

/** A field that has a column, and what that holds where the field is left out. */
interface ColumnField {
  readonly name: string;
  readonly writer: AttributeWriter;
  readonly zero: ConstantText | number | undefined;
}

/** A field that the payload has. */
export type PayloadField = {
  readonly name: string;
  /** What stands before its value. */
  readonly key: string;
} & (
  | { readonly to: 'payload'; readonly zero: string | undefined; readonly isUint64: boolean }
  /** The map whose entries are the payload. */
  | { readonly to: 'map' }
  /** A member of the oneof, of which a message has one. */
  | { readonly to: 'oneof'; readonly order: KeyOrder | undefined }
);

/**
 * How the attributes of one event type become cells of a row, worked out once. Whatever has no column, or does not fit its column (a
 * text where a number belongs), is kept in `json_payload` under its own name and with its own text; an event type that nobody knows
 * goes there whole.
 */
export class EventPlan {
  /** The event type as a text of its column. */
  readonly eventType: ConstantText;
  readonly columns: readonly ColumnField[];
  /** Fields of the payload in its order; members of the oneof stand together. */
  readonly payload: readonly PayloadField[];
  /** Whether the payload is the attributes as they are, but for the order of their keys. */
  readonly isWhole: boolean;
  readonly order: KeyOrder | undefined;
  /** Whether there is a payload even where it is empty. */
  readonly isPayloadAlways: boolean;
  readonly payloadColumn: TextColumn;
  /** A column that holds the same text for every message of this type. */
  readonly constant: { readonly column: TextColumn; readonly text: ConstantText } | undefined;

  constructor(eventType: string, columns: RowGroupColumns) {
    const layout = MESSAGE_LAYOUTS.get(eventType);
    this.eventType = constantText(eventType);
    this.isWhole = layout === undefined || layout.columns.length + layout.payload.length === 0;
    this.order = MESSAGE_KEY_ORDERS.get(eventType);
    this.isPayloadAlways = layout === undefined || layout.payloadIs === 'always';
    this.payloadColumn = textColumn(columns.attributeWriter('json_payload'));
    this.payload = layout === undefined ? [] : payloadFieldsOf(layout);
    this.columns = (layout?.columns ?? []).map(({ field, column, zero }) => ({
      name: field,
      writer: columns.attributeWriter(column),
      zero: typeof zero === 'string' ? constantText(zero) : zero,
    }));
    this.constant = layout?.constant && {
      column: textColumn(columns.attributeWriter(layout.constant.column)),
      text: constantText(layout.constant.text),
    };
  }
}

function payloadFieldsOf(layout: MessageLayout): readonly PayloadField[] {
  const plain = (name: string, zero?: JsonValue, isUint64 = false): PayloadField => ({
    ...{ to: 'payload', name, key: `"${name}":`, isUint64 },
    zero: zero === undefined ? undefined : JSON.stringify(zero),
  });
  const members = [...ONEOF_MEMBERS].map(([name, variant]): PayloadField => {
    return { to: 'oneof', name, key: `"${ONEOF_FIELD}":{"${variant}":`, order: ONEOF_KEY_ORDERS.get(name) };
  });
  const fields = layout.payload.flatMap(({ field, zero, isUint64 }): readonly PayloadField[] =>
    field === ONEOF_FIELD ? [...members, plain(field)] : [plain(field, zero, isUint64)],
  );
  const { payloadMap } = layout;
  return payloadMap === undefined ? fields : [{ to: 'map', name: payloadMap, key: `"${payloadMap}":` }, ...fields];
}

export function constantText(text: string): ConstantText {
  return new ConstantText(ByteSource.of(text));
}

function textColumn(writer: AttributeWriter): TextColumn {
  if (writer.kind !== 'text') throw new Error('a text column was expected');
  return writer.column;
}

/** Plans kept; those of further event types, which nobody knows, are worked out again each time. */
const MAX_PLANS = 256;

/** The plan of each event type. */
export class EventPlans {
  /** What the column of records' types says. */
  readonly recordTypes = {
    SpanStart: constantText('SpanStart'),
    SpanEnd: constantText('SpanEnd'),
    LogRecord: constantText('LogRecord'),
  };
  private readonly plans = new Map<string, EventPlan>();

  constructor(private readonly columns: RowGroupColumns) {}

  of(eventType: string): EventPlan {
    const known = this.plans.get(eventType);
    if (known !== undefined) return known;
    const made = new EventPlan(eventType, this.columns);
    if (this.plans.size < MAX_PLANS) this.plans.set(eventType, made);
    return made;
  }
}
