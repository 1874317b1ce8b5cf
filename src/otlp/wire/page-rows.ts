import { buffer, copyText, putId, REGION, view } from '../../record/arena.js';
import { Cell, cell } from '../../record/cells.js';
import { QUOTE } from '../../record/json-line.js';
import { digestOf } from '../../record/log-digest.js';
import { CELL, type RecordPage } from '../../record/record-page.js';
import type { AttributeSchema } from '../attribute-schema.js';
import { ItemCells } from './item-cells.js';
import { type Layout, Layouts } from './layouts.js';
import { LineWriter } from './line-writer.js';

const BAR = 0x7c;

/**
 * Makes rows of a page of spans and log records that stand in the arena: what `ItemRecords` makes of the same, for those that look as nearly
 * all of the engine's do.
 */
export class PageRows {
  private readonly layouts: Layouts;
  private readonly items: ItemCells;
  private readonly lines: LineWriter;

  constructor(schema: AttributeSchema) {
    this.layouts = new Layouts(schema);
    this.items = new ItemCells(this.layouts);
    this.lines = new LineWriter(this.layouts);
  }

  /** A request is going to be read. */
  begin(): void {
    this.layouts.tidy();
  }

  /** Adds a span with its SpanStart and SpanEnd. @returns whether it looks as usual; else nothing is added */
  addSpan(start: number, end: number, page: RecordPage): boolean {
    if (!this.items.readSpan(start, end)) return false;
    const linesEnd = this.lines.span(REGION.lines);
    if (this.lines.isUnusual) return false;
    const at = this.addRow(page, linesEnd, this.lines.endLine);
    const { cells } = page;
    cells[at + CELL.parentHigh] = cell(Cell.parentHigh);
    cells[at + CELL.parentLow] = cell(Cell.parentLow);
    cells[at + CELL.statusCode] = cell(Cell.code);
    cells[at + CELL.linkHigh] = cell(Cell.linkHigh);
    cells[at + CELL.linkLow] = cell(Cell.linkLow);
    return true;
  }

  /** Adds a log record of a span, without the span's name, which OTLP does not carry. @returns as `addSpan` */
  addLog(start: number, end: number, page: RecordPage): boolean {
    if (!this.items.readLog(start, end)) return false;
    const linesEnd = this.lines.log(REGION.lines);
    if (this.lines.isUnusual) return false;
    const at = this.addRow(page, linesEnd, REGION.lines);
    const { cells } = page;
    cells[at + CELL.isLog] = 1;
    cells[at + CELL.severityNumber] = cell(Cell.code);
    const [digestHigh, digestLow] = this.digest(linesEnd);
    cells[at + CELL.digestHigh] = digestHigh;
    cells[at + CELL.digestLow] = digestLow;
    return true;
  }

  /** Copies the lines into the page. @returns the row's first cell */
  private addRow(page: RecordPage, linesEnd: number, endLine: number): number {
    const { lines } = this;
    const { out } = page;
    const at = page.reserve();
    const { cells } = page;
    const shift = out.length - REGION.lines;
    out.reserve(linesEnd - REGION.lines);
    out.copyFrom(buffer, REGION.lines, linesEnd);
    const layout = this.layouts.layout(cell(Cell.layout));
    cells[at + CELL.startLine] = REGION.lines + shift;
    cells[at + CELL.endLine] = endLine + shift;
    cells[at + CELL.lineEnd] = linesEnd + shift;
    cells[at + CELL.idHigh] = cell(Cell.idHigh);
    cells[at + CELL.idLow] = cell(Cell.idLow);
    cells[at + CELL.eventType] = page.indexOfType(layout.event.eventType);
    cells[at + CELL.startTimeLow] = cell(Cell.startLow);
    cells[at + CELL.startTimeHigh] = cell(Cell.startHigh);
    cells[at + CELL.endTimeLow] = cell(Cell.endLow);
    cells[at + CELL.endTimeHigh] = cell(Cell.endHigh);
    cells[at + CELL.nameStart] = lines.nameStart + shift;
    cells[at + CELL.nameEnd] = lines.nameEnd + shift;
    this.note(layout, cells, at, shift);
    page.rowCount += 1;
    return at;
  }

  /** Notes in the page where the attributes stand that it has to know. */
  private note({ noted, attributes }: Layout, cells: Uint32Array, at: number, shift: number): void {
    const { places } = this.lines;
    for (const index of noted) {
      const pageCell = attributes[index]?.pageCell ?? 0;
      // Which detail it is, its name tells.
      const isDetail = pageCell === CELL.detailStart;
      const start = places[3 * index + (isDetail ? 0 : 1)] as number;
      if ((!isDetail && view.getUint8(start) !== QUOTE) || cells[at + pageCell + 1] !== 0) {
        cells[at + CELL.isSpecial] = 1;
        continue;
      }
      cells[at + pageCell] = start + shift;
      cells[at + pageCell + 1] = (places[3 * index + 2] as number) + shift;
    }
  }

  /** What tells the log record whose line was written last from others: see `logDigest`. @param scratch a place behind the line */
  private digest(scratch: number): readonly [number, number] {
    const { timeStart, timeEnd } = this.lines;
    const { typeName } = this.layouts.layout(cell(Cell.layout)).event;
    let to = putId(scratch, cell(Cell.idHigh), cell(Cell.idLow));
    view.setUint8(to++, BAR);
    to = copyText(to, timeStart, timeEnd - timeStart);
    view.setUint8(to++, BAR);
    to = copyText(to, typeName.at, typeName.length);
    view.setUint8(to++, BAR);
    to = copyText(to, cell(Cell.textStart), cell(Cell.textEnd) - cell(Cell.textStart));
    return digestOf(buffer.subarray(scratch, to));
  }
}
