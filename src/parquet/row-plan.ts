import type { ByteSource } from '../core/bytes.js';
import { Form, type Layout, type Stretch } from '../otlp/wire/layouts.js';
import { view } from '../record/arena.js';
import { Attribute, cell, Value } from '../record/cells.js';
import { OPEN } from '../record/json-line.js';
import { attributeAt, CellPayload, type RowAttribute } from './cell-payload.js';
import type { BooleanColumn, ConstantText, NumberColumn, TextColumn } from './column.js';
import { constantText, type EventPlan } from './event-plan.js';

/** A value of an attribute that goes into a column. @param at its first cell */
interface FromCell<Column> {
  readonly column: Column;
  readonly at: number;
}

/** Texts that a row has from the row before. */
export interface SharedTexts {
  readonly texts: Uint8Array;
  readonly isPayload: boolean;
}

export const NOTHING_SHARED: SharedTexts = { texts: new Uint8Array(0), isPayload: false };

/** What an attribute has to be, so that it fits its place. */
const Check = { text: 0, bool: 1, integer: 2, count: 3, object: 4 } as const;

interface CheckedCell {
  readonly at: number;
  /** One of `Check`. */
  readonly check: number;
}

/**
 * How records that have the same attributes, in the same order, become cells of a row: found out once. Each kind of column has a
 * loop of its own.
 */
export class RowPlan {
  /** Whether plain code has to write them: something goes elsewhere than usual. */
  isPlain = false;
  readonly payload: CellPayload;
  private readonly checks: CheckedCell[] = [];
  private readonly texts: FromCell<TextColumn>[] = [];
  private readonly counts: FromCell<NumberColumn>[] = [];
  private readonly integers: FromCell<NumberColumn>[] = [];
  private readonly booleans: FromCell<BooleanColumn>[] = [];
  private readonly constants: { readonly column: TextColumn; readonly text: ConstantText }[] = [];
  private readonly zeros: { readonly column: NumberColumn; readonly value: number }[] = [];

  constructor(
    readonly event: EventPlan,
    attributes: readonly RowAttribute[],
  ) {
    const byName = new Map(attributes.map((attribute) => [attribute.name, attribute]));
    for (const field of event.isWhole ? [] : event.columns) this.addColumn(field, byName.get(field.name));
    if (event.constant !== undefined) this.constants.push(event.constant);
    const columnNames = new Set(event.columns.map(({ name }) => name));
    this.payload = new CellPayload(
      event,
      attributes.filter(({ name }) => event.isWhole || !columnNames.has(name)),
    );
    for (const at of this.payload.counts) this.checks.push({ at, check: Check.count });
    for (const at of this.payload.objects) this.checks.push({ at, check: Check.object });
    this.isPlain ||= this.payload.isPlain;
  }

  /** Whether the values of the record that is looked at are such as their places can hold. */
  fits(): boolean {
    const { checks } = this;
    for (let index = 0; index < checks.length; index++) if (!isFitting(checks[index] as CheckedCell)) return false;
    return this.payload.fits();
  }

  /**
   * Of each text 1 where the start before an end was given the same one, and whether the payload is the same.
   * @param start the plan of that start
   */
  sharedWith(start: RowPlan): SharedTexts {
    const found = this.texts.map(({ at }) => Number(start.texts.some((text) => text.at === at)));
    return { texts: Uint8Array.from(found), isPayload: this.payload.isSameAs(start.payload) };
  }

  /** Writes what has columns; the payload has its own way. */
  write(row: number, arena: ByteSource, shared: SharedTexts): void {
    const { texts, constants, counts, integers, booleans, zeros } = this;
    for (let index = 0; index < texts.length; index++) {
      const { column, at } = texts[index] as FromCell<TextColumn>;
      const start = cell(at + Attribute.valueStart);
      const end = cell(at + Attribute.valueEnd);
      if (shared.texts[index] === 1) column.appendAgain(row, arena, start, end);
      else column.append(row, arena, start, end);
    }
    for (const { column, text } of constants) column.appendConstant(row, text);
    for (const { column, at } of counts) {
      const value = digitsAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd));
      column.append(row, (value / 0x1_0000_0000) | 0, value | 0);
    }
    for (const { column, at } of integers) {
      column.append(row, 0, varintAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd)));
    }
    for (const { column, at } of booleans) column.append(row, view.getUint8(cell(at + Attribute.valueStart)) !== 0);
    for (const { column, value } of zeros) column.append(row, 0, value);
  }

  private addColumn({ writer, zero }: EventPlan['columns'][number], attribute: RowAttribute | undefined): void {
    if (attribute === undefined) {
      if (typeof zero === 'object' && writer.kind === 'text')
        this.constants.push({ column: writer.column, text: zero });
      if (typeof zero === 'number' && (writer.kind === 'int32' || writer.kind === 'uint32')) {
        this.zeros.push({ column: writer.column, value: zero });
      }
      return;
    }
    const { index, json, form } = attribute;
    if (index < 0) {
      const value: unknown = JSON.parse(json);
      if (writer.kind !== 'text' || typeof value !== 'string') this.isPlain = true;
      else this.constants.push({ column: writer.column, text: constantText(value) });
      return;
    }
    if (form === Form.nested) this.isPlain = true;
    const at = attributeAt(index);
    switch (writer.kind) {
      case 'text':
        this.checks.push({ at, check: Check.text });
        this.texts.push({ column: writer.column, at });
        break;
      case 'boolean':
        this.checks.push({ at, check: Check.bool });
        this.booleans.push({ column: writer.column, at });
        break;
      case 'uint64':
        this.checks.push({ at, check: Check.count });
        this.counts.push({ column: writer.column, at });
        break;
      default:
        this.checks.push({ at, check: Check.integer });
        this.integers.push({ column: writer.column, at });
    }
  }
}

/** The attributes of records with a layout. */
export function attributesOf({ attributes }: Layout): readonly RowAttribute[] {
  return attributes.map(({ name, form }, index) => ({ name, form, index, json: '' }));
}

/** Those that the start has of a record with a layout. */
export function attributesAtStart({ attributes }: Layout, stretches: readonly Stretch[]): readonly RowAttribute[] {
  return stretches.flatMap(({ isShared, from, to }) =>
    attributes.slice(from, to).flatMap(({ name, form, valueAtStart }, ahead): readonly RowAttribute[] => {
      if (isShared) return [{ name, form, index: from + ahead, json: '' }];
      return valueAtStart === undefined ? [] : [{ name, form, index: -1, json: valueAtStart }];
    }),
  );
}

/** More are not surely exact. */
const MAX_DIGITS = 15;

function isFitting({ at, check }: CheckedCell): boolean {
  const kind = cell(at + Attribute.kind);
  switch (check) {
    case Check.text:
      return kind === Value.text;
    case Check.bool:
      return kind === Value.bool;
    case Check.integer:
      return kind === Value.integer;
    case Check.count:
      return kind === Value.text && digitsAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd)) >= 0;
    default: {
      const start = cell(at + Attribute.valueStart);
      return kind === Value.text && start < cell(at + Attribute.valueEnd) && view.getUint8(start) === OPEN;
    }
  }
}

/** Decimal digits as a number; -1 where they are none, needless zeros, or too many. */
function digitsAt(start: number, end: number): number {
  const first = view.getUint8(start);
  if (start === end || end - start > MAX_DIGITS || (first === 0x30 && end - start > 1)) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = view.getUint8(at) - 0x30;
    if (digit >>> 0 > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function varintAt(start: number, end: number): number {
  let value = 0;
  for (let at = start, shift = 0; at < end; at++, shift += 7) value |= (view.getUint8(at) & 0x7f) << shift;
  return value;
}
