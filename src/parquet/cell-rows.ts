import { ByteSource } from '../core/bytes.js';
import { Form, type Layout, type Layouts, type Stretch } from '../otlp/wire/layouts.js';
import type { CellSink } from '../otlp/wire/line-cells.js';
import type { LineScanner } from '../otlp/wire/line-scanner.js';
import type { StartLines } from '../otlp/wire/start-lines.js';
import { buffer, view } from '../record/arena.js';
import { Attribute, Cell, cell, Value } from '../record/cells.js';
import { OPEN } from '../record/json-line.js';
import { INFO } from '../record/severity.js';
import { type AttributeOffsets, attributeAt, CellPayload, type RowAttribute, type TextRoom } from './cell-payload.js';
import type { BooleanColumn, ConstantText, NumberColumn, TextColumn } from './column.js';
import { constantText, type EventPlan, type EventPlans } from './event-plan.js';
import type { RowGroupColumns } from './row-group.js';

const EMPTY_OBJECT = ByteSource.of('{}');
const TRACE_ID_BYTES = 16;

/** The plan of ends with the starts that stand before them. */
interface KnownPair {
  readonly stretches: readonly Stretch[];
  readonly plan: PairPlan;
}

/** The plans of records with one layout. */
interface LayoutPlans {
  readonly layout: Layout;
  readonly own: RowPlan;
  readonly pairs: KnownPair[];
}

/** Writes records that have cells as rows. What they say is read from the cells that are looked at, and from the line that was scanned. */
export class CellRows {
  /** By number of the layout. */
  private plans: (LayoutPlans | undefined)[] = [];
  private readonly severityTexts = new Map<string, ConstantText>();
  private readonly lastTraceId = new Int32Array(TRACE_ID_BYTES / 4);
  private traceId = constantText('');

  constructor(
    private readonly columns: RowGroupColumns,
    private readonly eventPlans: EventPlans,
    private readonly layouts: Layouts,
    private readonly scanner: LineScanner<CellSink>,
    private readonly room: TextRoom,
  ) {}

  /** Whether the start that stands before the end that was scanned can be written with it. */
  isPair(start: StartLines): boolean {
    const { own } = this.plansOfLayout();
    // All that the start has of its own is known, and fits.
    return !own.isPlain && !this.pairPlan(start).plan.isPlain && own.fits();
  }

  /** Writes a start and the end behind it that was scanned, of which `isPair` said so. */
  writePair(start: StartLines): void {
    const { columns } = this;
    const { recordTypes } = this.eventPlans;
    const { layout, own } = this.plansOfLayout();
    const row = this.begin(2, own);
    columns.recordType.appendConstant(row, 1, recordTypes.SpanStart);
    columns.recordType.appendConstant(row + 1, 1, recordTypes.SpanEnd);
    this.span(row, 2, layout);
    this.end(row + 1);
    this.pairPlan(start).plan.write(row, this.room, this.startOffsets(start), this.attributeOffsets());
  }

  /** Writes the start or the end that was scanned. @returns `false` where plain code has to do it; nothing was written then */
  writeSpan(isEnd: boolean): boolean {
    const { own, layout } = this.plansOfLayout();
    if (own.isPlain || !own.fits()) return false;
    const { recordTypes } = this.eventPlans;
    const row = this.begin(1, own);
    this.columns.recordType.appendConstant(row, 1, isEnd ? recordTypes.SpanEnd : recordTypes.SpanStart);
    this.span(row, 1, layout);
    if (isEnd) this.end(row);
    this.writeValues(row, own);
    return true;
  }

  /** Writes the log record that was scanned. @returns as `writeSpan` */
  writeLog(): boolean {
    const { columns, scanner } = this;
    const { own } = this.plansOfLayout();
    if (own.isPlain || !own.fits()) return false;
    const row = this.begin(1, own);
    columns.recordType.appendConstant(row, 1, this.eventPlans.recordTypes.LogRecord);
    if (scanner.spanNameStart !== 0) {
      columns.spanName.append(row, 1, scanner.spanNameStart, scanner.spanNameEnd);
    }
    if (scanner.eventIdStart !== 0) columns.eventId.append(row, 1, scanner.eventIdStart, scanner.eventIdEnd);
    columns.severityNumber.append(row, 1, 0, cell(Cell.code));
    columns.severityText.append(row, 1, cell(Cell.messageStart), cell(Cell.messageEnd));
    columns.time.append(row, 1, cell(Cell.startHigh), cell(Cell.startLow));
    columns.body.append(row, 1, cell(Cell.textStart), cell(Cell.textEnd));
    this.writeValues(row, own);
    return true;
  }

  private writeValues(row: number, { values, payload }: RowPlan): void {
    values.write(row, 1);
    payload.write(row, 1, this.room, this.attributeOffsets());
  }

  /** Writes what a span's start and its end have alike. @param rowCount 1, or 2 where both are written */
  private span(row: number, rowCount: number, { event }: Layout): void {
    const { columns, scanner } = this;
    const severity = scanner.isInfo ? INFO : event.severity;
    const parentHigh = cell(Cell.parentHigh);
    const parentLow = cell(Cell.parentLow);
    columns.spanName.append(row, rowCount, cell(Cell.textStart), cell(Cell.textEnd));
    columns.severityNumber.append(row, rowCount, 0, severity.number);
    columns.severityText.appendConstant(row, rowCount, this.severityText(severity.text));
    if ((parentHigh | parentLow) !== 0) columns.parentSpanId.append(row, rowCount, parentHigh, parentLow);
    columns.startTime.append(row, rowCount, cell(Cell.startHigh), cell(Cell.startLow));
  }

  private end(row: number): void {
    const { columns } = this;
    columns.endTime.append(row, 1, cell(Cell.endHigh), cell(Cell.endLow));
    const code = cell(Cell.code);
    const isSilent = cell(Cell.messageStart) === cell(Cell.messageEnd);
    if (code !== 0 || !isSilent) columns.statusCode.append(row, 1, 0, code);
    if (!isSilent) columns.statusMessage.append(row, 1, cell(Cell.messageStart), cell(Cell.messageEnd));
    if ((cell(Cell.linkHigh) | cell(Cell.linkLow)) !== 0) this.link(row);
  }

  /** One link, to a span of the same trace. */
  private link(row: number): void {
    const { linkTraceId, linkSpanId, linkPayload } = this.columns;
    const { source } = this.traceIdText();
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) writer.beginList(row);
    linkTraceId.appendItem(0, source, 0, source.bytes.length);
    linkSpanId.appendItem(0, cell(Cell.linkHigh), cell(Cell.linkLow));
    linkPayload.appendItem(0, EMPTY_OBJECT, 0, EMPTY_OBJECT.bytes.length);
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endList(row);
  }

  private begin(rowCount: number, { event }: RowPlan): number {
    const { columns } = this;
    const row = columns.rowCount;
    columns.rowCount += rowCount;
    columns.traceId.appendConstant(row, rowCount, this.traceIdText());
    columns.spanId.append(row, rowCount, cell(Cell.idHigh), cell(Cell.idLow));
    columns.eventType.appendConstant(row, rowCount, event.eventType);
    return row;
  }

  private traceIdText(): ConstantText {
    const at = cell(Cell.traceId);
    const { lastTraceId } = this;
    // Most records have the trace id of the one before.
    for (let word = 0; word < lastTraceId.length; word++) {
      if (view.getInt32(at + 4 * word) !== lastTraceId[word]) return this.newTraceId(at);
    }
    return this.traceId;
  }

  private newTraceId(at: number): ConstantText {
    for (let word = 0; word < this.lastTraceId.length; word++) this.lastTraceId[word] = view.getInt32(at + 4 * word);
    this.traceId = constantText(buffer.toString('hex', at, at + TRACE_ID_BYTES));
    return this.traceId;
  }

  private severityText(text: string): ConstantText {
    let known = this.severityTexts.get(text);
    if (known === undefined) {
      known = constantText(text);
      this.severityTexts.set(text, known);
    }
    return known;
  }

  /** Where the attributes of the line that was scanned stand. */
  private attributeOffsets(): AttributeOffsets {
    const { offsets } = this.scanner;
    const count = cell(Cell.attributeCount);
    // Behind the last one stands the brace.
    return { start: offsets[0] as number, end: (offsets[count] as number) + (count === 0 ? 2 : 1), offsets };
  }

  private startOffsets({ attributesAt, attributesEnd }: StartLines): AttributeOffsets {
    return { start: attributesAt, end: attributesEnd, offsets: this.scanner.offsets };
  }

  private plansOfLayout(): LayoutPlans {
    const number = cell(Cell.layout);
    const layout = this.layouts.layout(number);
    const known = this.plans[number];
    // Another one has the number since all were forgotten.
    if (known?.layout === layout) return known;
    if (number === 0 || number > this.plans.length) this.plans = Array.from({ length: number }, () => undefined);
    const event = this.eventPlans.of(layout.event.eventType);
    const made: LayoutPlans = { layout, own: new RowPlan(event, attributesOf(layout)), pairs: [] };
    this.plans[number] = made;
    return made;
  }

  private pairPlan({ stretches }: StartLines): KnownPair {
    const { layout, own, pairs } = this.plansOfLayout();
    for (const known of pairs) if (known.stretches === stretches) return known;
    const start = new RowPlan(own.event, attributesAtStart(layout, stretches));
    const made = { stretches, plan: new PairPlan(start, own) };
    pairs.push(made);
    return made;
  }
}

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

/** What an attribute has to be, so that it fits its column. */
const Check = { text: 0, bool: 1, integer: 2, count: 3, object: 4 } as const;

interface CheckedCell {
  readonly at: number;
  /** One of `Check`. */
  readonly check: number;
}

/** How records that have the same attributes, in the same order, become cells of a row: found out once. */
class RowPlan {
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

  /** Whether the values of the record that is looked at are such as their columns can hold. */
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
class PairPlan {
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
  write(row: number, room: TextRoom, starts: AttributeOffsets, ends: AttributeOffsets): void {
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
function attributesOf({ attributes }: Layout): readonly RowAttribute[] {
  return attributes.map(({ name, form }, index) => ({ name, form, index, json: '' }));
}

/** Those that the start has of a record with a layout. */
function attributesAtStart({ attributes }: Layout, stretches: readonly Stretch[]): readonly RowAttribute[] {
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
