import { Form, type Layout, type Stretch } from '../otlp/wire/layouts.js';
import { view } from '../record/arena.js';
import { Attribute, cell, Value } from '../record/cells.js';
import { OPEN } from '../record/json-line.js';
import { type AttributePlaces, attributeAt, CellPayload, type RowAttribute, type TextRoom } from './cell-payload.js';
import type { BooleanColumn, ConstantText, NumberColumn, TextColumn } from './column.js';
import { constantText, type EventPlan } from './event-plan.js';

/** A value of an attribute that goes into a column. @param at its first cell */
interface FromCell<Column> {
  readonly column: Column;
  readonly at: number;
}

/** A text that a column holds for all records alike. */
interface FixedText {
  readonly column: TextColumn;
  readonly text: ConstantText;
}

/** A number that it does. */
interface FixedNumber {
  readonly column: NumberColumn;
  readonly value: number;
}

/** What of a row goes into columns, the payload's apart. Each kind of column has a loop of its own. */
class RowValues {
  constructor(
    readonly texts: FromCell<TextColumn>[] = [],
    readonly counts: FromCell<NumberColumn>[] = [],
    readonly integers: FromCell<NumberColumn>[] = [],
    readonly booleans: FromCell<BooleanColumn>[] = [],
    readonly constants: FixedText[] = [],
    readonly zeros: FixedNumber[] = [],
  ) {}

  /** Those of them that another row has too, or has not. */
  filtered(other: RowValues, isShared: boolean): RowValues {
    const isIn = <Value>(values: readonly Value[], isSame: (one: Value, two: Value) => boolean) => {
      return (value: Value) => values.some((one) => isSame(one, value)) === isShared;
    };
    const isSameCell = (one: FromCell<unknown>, two: FromCell<unknown>) =>
      one.column === two.column && one.at === two.at;
    return new RowValues(
      this.texts.filter(isIn(other.texts, isSameCell)),
      this.counts.filter(isIn(other.counts, isSameCell)),
      this.integers.filter(isIn(other.integers, isSameCell)),
      this.booleans.filter(isIn(other.booleans, isSameCell)),
      this.constants.filter(isIn(other.constants, (one, two) => one.column === two.column && one.text === two.text)),
      this.zeros.filter(isIn(other.zeros, (one, two) => one.column === two.column && one.value === two.value)),
    );
  }

  /** Writes them into a row, or into two that follow one another. @param rowCount 1 or 2 */
  write(row: number, rowCount: number): void {
    const { texts, counts, integers, booleans, constants, zeros } = this;
    for (const { column, at } of texts) {
      column.append(row, rowCount, cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd));
    }
    for (const { column, text } of constants) column.appendConstant(row, rowCount, text);
    for (const { column, at } of counts) {
      const value = digitsAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd));
      column.append(row, rowCount, (value / 0x1_0000_0000) | 0, value | 0);
    }
    for (const { column, at } of integers) {
      column.append(row, rowCount, 0, varintAt(cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd)));
    }
    for (const { column, at } of booleans) {
      column.append(row, rowCount, view.getUint8(cell(at + Attribute.valueStart)) !== 0);
    }
    for (const { column, value } of zeros) column.append(row, rowCount, 0, value);
  }
}

/** What an attribute has to be, so that it fits its place. */
const Check = { text: 0, bool: 1, integer: 2, count: 3, object: 4 } as const;

interface CheckedCell {
  readonly at: number;
  /** One of `Check`. */
  readonly check: number;
}

/** How records that have the same attributes, in the same order, become cells of a row: found out once. */
export class RowPlan {
  /** Whether plain code has to write them: something goes elsewhere than usual. */
  isPlain = false;
  readonly payload: CellPayload;
  readonly values = new RowValues();
  private readonly checks: CheckedCell[] = [];

  constructor(
    readonly event: EventPlan,
    attributes: readonly RowAttribute[],
  ) {
    const byName = new Map(attributes.map((attribute) => [attribute.name, attribute]));
    for (const field of event.isWhole ? [] : event.columns) this.addColumn(field, byName.get(field.name));
    if (event.constant !== undefined) this.values.constants.push(event.constant);
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

  private addColumn({ writer, zero }: EventPlan['columns'][number], attribute: RowAttribute | undefined): void {
    const { values } = this;
    if (attribute === undefined) {
      if (typeof zero === 'object' && writer.kind === 'text')
        values.constants.push({ column: writer.column, text: zero });
      if (typeof zero === 'number' && (writer.kind === 'int32' || writer.kind === 'uint32')) {
        values.zeros.push({ column: writer.column, value: zero });
      }
      return;
    }
    const { index, json, form } = attribute;
    if (index < 0) {
      const value: unknown = JSON.parse(json);
      if (writer.kind !== 'text' || typeof value !== 'string') this.isPlain = true;
      else values.constants.push({ column: writer.column, text: constantText(value) });
      return;
    }
    if (form === Form.nested) this.isPlain = true;
    const at = attributeAt(index);
    switch (writer.kind) {
      case 'text':
        this.checks.push({ at, check: Check.text });
        values.texts.push({ column: writer.column, at });
        break;
      case 'boolean':
        this.checks.push({ at, check: Check.bool });
        values.booleans.push({ column: writer.column, at });
        break;
      case 'uint64':
        this.checks.push({ at, check: Check.count });
        values.counts.push({ column: writer.column, at });
        break;
      default:
        this.checks.push({ at, check: Check.integer });
        values.integers.push({ column: writer.column, at });
    }
  }
}

/** How a start and its end behind it become two rows: what both have is written at once. */
export class PairPlan {
  /** Whether plain code has to write the start. */
  readonly isPlain: boolean;
  private readonly both: RowValues;
  private readonly ofStart: RowValues;
  private readonly ofEnd: RowValues;
  private readonly isPayloadShared: boolean;

  constructor(
    private readonly start: RowPlan,
    private readonly end: RowPlan,
  ) {
    this.isPlain = start.isPlain;
    this.both = end.values.filtered(start.values, true);
    this.ofStart = start.values.filtered(end.values, false);
    this.ofEnd = end.values.filtered(start.values, false);
    this.isPayloadShared = end.payload.isSameAs(start.payload);
  }

  /**
   * Writes both rows of the end that is looked at.
   * @param row that of the start
   * @param room as in `CellPayload.write`
   * @param starts where the start's attributes stand; @param ends where those of the end do
   */
  write(row: number, room: TextRoom, starts: AttributePlaces, ends: AttributePlaces): void {
    const { both, ofStart, ofEnd, start, end } = this;
    both.write(row, 2);
    ofStart.write(row, 1);
    ofEnd.write(row + 1, 1);
    if (this.isPayloadShared) {
      end.payload.write(row, 2, room, ends);
    } else {
      start.payload.write(row, 1, room, starts);
      end.payload.write(row + 1, 1, room, ends);
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
