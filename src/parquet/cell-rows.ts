import { ByteSource } from '../core/bytes.js';
import type { Layout, Layouts, Stretch } from '../otlp/wire/layouts.js';
import type { CellSink } from '../otlp/wire/line-cells.js';
import type { LineScanner } from '../otlp/wire/line-scanner.js';
import type { StartLines } from '../otlp/wire/start-lines.js';
import { buffer, view } from '../record/arena.js';
import { Cell, cell } from '../record/cells.js';
import { INFO } from '../record/severity.js';
import type { AttributePlaces, TextRoom } from './cell-payload.js';
import type { ConstantText } from './column.js';
import { constantText, type EventPlans } from './event-plan.js';
import type { RowGroupColumns } from './row-group.js';
import { attributesAtStart, attributesOf, PairPlan, RowPlan } from './row-plan.js';

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
    this.pairPlan(start).plan.write(row, this.room, this.placesOf(start), this.ownPlaces());
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
    payload.write(row, 1, this.room, this.ownPlaces());
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
  private ownPlaces(): AttributePlaces {
    const { places } = this.scanner;
    const count = cell(Cell.attributeCount);
    // Behind the last one stands the brace.
    return { start: places[0] as number, end: (places[count] as number) + (count === 0 ? 2 : 1), places };
  }

  private placesOf({ attributesAt, attributesEnd }: StartLines): AttributePlaces {
    return { start: attributesAt, end: attributesEnd, places: this.scanner.places };
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
