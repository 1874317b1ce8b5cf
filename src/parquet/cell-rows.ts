import { ByteSource } from '../core/bytes.js';
import type { Layout, Layouts, Stretch } from '../otlp/wire/layouts.js';
import type { LineScanner } from '../otlp/wire/line-scanner.js';
import type { StartLines } from '../otlp/wire/start-lines.js';
import { buffer, view } from '../record/arena.js';
import { Cell, cell } from '../record/cells.js';
import { INFO } from '../record/severity.js';
import type { ConstantText } from './column.js';
import { constantText, type EventPlans } from './event-plan.js';
import type { RowGroupColumns } from './row-group.js';
import { attributesAtStart, attributesOf, NOTHING_SHARED, RowPlan, type SharedTexts } from './row-plan.js';

const ARENA = new ByteSource(buffer);
const EMPTY_OBJECT = ByteSource.of('{}');
const TRACE_ID_BYTES = 16;

/** The plan of starts that stand before their ends, and what the ends have from them. */
interface StartPlan {
  readonly stretches: readonly Stretch[];
  readonly plan: RowPlan;
  readonly shared: SharedTexts;
}

/** The plans of records with one layout. */
interface LayoutPlans {
  readonly layout: Layout;
  readonly own: RowPlan;
  /** Those of the starts that stand before them. */
  readonly starts: StartPlan[];
}

/** Writes records that have cells as rows. What they say is read from the cells that are looked at, and from the line that was scanned. */
export class CellRows {
  /** By number of the layout. */
  private plans: (LayoutPlans | undefined)[] = [];
  private readonly severityTexts = new Map<string, ConstantText>();
  private readonly lastTraceId = new Int32Array(TRACE_ID_BYTES / 4);
  private traceId = constantText('');
  /** What the end has from the start that was written last. */
  private shared = NOTHING_SHARED;

  constructor(
    private readonly columns: RowGroupColumns,
    private readonly eventPlans: EventPlans,
    private readonly layouts: Layouts,
    private readonly scanner: LineScanner,
  ) {}

  /** Writes a start that stands before the end that was scanned. @returns `false` where plain code has to do it; nothing was written then */
  writeStartOf(start: StartLines): boolean {
    const plans = this.plansOfLayout();
    const { plan, shared } = startPlanOf(plans, start.stretches);
    // All that the start has of its own is known, and fits.
    if (plan.isPlain || plans.own.isPlain || !plans.own.fits()) return false;
    this.shared = shared;
    this.span(plan, plans.layout, false, start.attributesAt, start.attributesEnd);
    return true;
  }

  /** Writes the end that was scanned, behind its start. */
  writeEnd(): void {
    const { own, layout } = this.plansOfLayout();
    this.span(own, layout, true, this.attributesAt, this.attributesEnd, this.shared);
  }

  /** Writes the start or the end that was scanned. @returns as `writeStartOf` */
  writeSpan(isEnd: boolean): boolean {
    const { own, layout } = this.plansOfLayout();
    if (own.isPlain || !own.fits()) return false;
    this.span(own, layout, isEnd, this.attributesAt, this.attributesEnd);
    return true;
  }

  /** Writes the log record that was scanned. @returns as `writeStartOf` */
  writeLog(): boolean {
    const { columns, scanner } = this;
    const { own } = this.plansOfLayout();
    if (own.isPlain || !own.fits()) return false;
    const row = this.begin(this.eventPlans.recordTypes.LogRecord, own);
    if (scanner.spanNameStart !== 0) {
      columns.spanName.append(row, ARENA, scanner.spanNameStart, scanner.spanNameEnd);
    }
    if (scanner.eventIdStart !== 0) columns.eventId.append(row, ARENA, scanner.eventIdStart, scanner.eventIdEnd);
    columns.severityNumber.append(row, 0, cell(Cell.code));
    columns.severityText.append(row, ARENA, cell(Cell.messageStart), cell(Cell.messageEnd));
    columns.time.append(row, cell(Cell.startHigh), cell(Cell.startLow));
    columns.body.append(row, ARENA, cell(Cell.textStart), cell(Cell.textEnd));
    own.write(row, ARENA, NOTHING_SHARED);
    own.payload.write(row, ARENA, this.attributesAt, this.attributesEnd, scanner.places);
    return true;
  }

  private span(
    plan: RowPlan,
    { event }: Layout,
    isEnd: boolean,
    attributesAt: number,
    attributesEnd: number,
    shared?: SharedTexts,
  ): void {
    const { columns, scanner } = this;
    const { recordTypes } = this.eventPlans;
    const row = this.begin(isEnd ? recordTypes.SpanEnd : recordTypes.SpanStart, plan);
    const severity = scanner.isInfo ? INFO : event.severity;
    const nameStart = cell(Cell.textStart);
    const nameEnd = cell(Cell.textEnd);
    if (shared === undefined) columns.spanName.append(row, ARENA, nameStart, nameEnd);
    else columns.spanName.appendAgain(row, ARENA, nameStart, nameEnd);
    columns.severityNumber.append(row, 0, severity.number);
    columns.severityText.appendConstant(row, this.severityText(severity.text));
    const parentHigh = cell(Cell.parentHigh);
    const parentLow = cell(Cell.parentLow);
    if ((parentHigh | parentLow) !== 0) columns.parentSpanId.append(row, parentHigh, parentLow);
    columns.startTime.append(row, cell(Cell.startHigh), cell(Cell.startLow));
    if (isEnd) this.end(row);
    plan.write(row, ARENA, shared ?? NOTHING_SHARED);
    if (shared?.isPayload === true) plan.payload.writeAgain(row, ARENA);
    else plan.payload.write(row, ARENA, attributesAt, attributesEnd, scanner.places);
  }

  private end(row: number): void {
    const { columns } = this;
    columns.endTime.append(row, cell(Cell.endHigh), cell(Cell.endLow));
    const code = cell(Cell.code);
    const isSilent = cell(Cell.messageStart) === cell(Cell.messageEnd);
    if (code !== 0 || !isSilent) columns.statusCode.append(row, 0, code);
    if (!isSilent) columns.statusMessage.append(row, ARENA, cell(Cell.messageStart), cell(Cell.messageEnd));
    if ((cell(Cell.linkHigh) | cell(Cell.linkLow)) !== 0) this.link(row);
  }

  /** One link, to a span of the same trace. */
  private link(row: number): void {
    const { linkTraceId, linkSpanId, linkPayload } = this.columns;
    const { source } = this.traceIdText();
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) writer.beginRow(row);
    linkTraceId.appendItem(0, source, 0, source.bytes.length);
    linkSpanId.appendItem(0, cell(Cell.linkHigh), cell(Cell.linkLow));
    linkPayload.appendItem(0, EMPTY_OBJECT, 0, EMPTY_OBJECT.bytes.length);
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endRow();
  }

  private begin(recordType: ConstantText, { event }: RowPlan): number {
    const { columns } = this;
    const row = columns.rowCount++;
    columns.recordType.appendConstant(row, recordType);
    columns.traceId.appendConstant(row, this.traceIdText());
    columns.spanId.append(row, cell(Cell.idHigh), cell(Cell.idLow));
    columns.eventType.appendConstant(row, event.eventType);
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

  /** Of the line that was scanned, without the braces round the record. */
  private get attributesAt(): number {
    return this.scanner.places[0] as number;
  }

  private get attributesEnd(): number {
    return (this.scanner.places[cell(Cell.attributeCount)] as number) + (cell(Cell.attributeCount) === 0 ? 2 : 1);
  }

  private plansOfLayout(): LayoutPlans {
    const number = cell(Cell.layout);
    const layout = this.layouts.layout(number);
    const known = this.plans[number];
    // Another one has the number since all were forgotten.
    if (known?.layout === layout) return known;
    if (number === 0 || number > this.plans.length) this.plans = Array.from({ length: number }, () => undefined);
    const event = this.eventPlans.of(layout.event.eventType);
    const made: LayoutPlans = { layout, own: new RowPlan(event, attributesOf(layout)), starts: [] };
    this.plans[number] = made;
    return made;
  }
}

function startPlanOf({ layout, own, starts }: LayoutPlans, stretches: readonly Stretch[]): StartPlan {
  for (const known of starts) if (known.stretches === stretches) return known;
  const plan = new RowPlan(own.event, attributesAtStart(layout, stretches));
  const made = { stretches, plan, shared: own.sharedWith(plan) };
  starts.push(made);
  return made;
}
