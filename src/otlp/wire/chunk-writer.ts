import { copyText, Outlet, putId, REGION, view } from '../../record/arena.js';
import { Cell, cell, pointAt } from '../../record/cells.js';
import { Digester } from '../../record/log-digest.js';
import { FIELD, type ItemChunk } from './item-chunk.js';
import type { ItemReading } from './read-items.js';

const BAR = 0x7c;
/** All lines are written at the same place. */
const LINES = new Outlet(REGION.lines);

/**
 * Adds spans and log records that stand in the arena to a chunk, with their lines: what `ItemRecords` makes of the same, for those that
 * look as nearly all of the engine's do.
 */
export class ChunkWriter {
  private readonly digester = new Digester();

  constructor(private readonly reading: ItemReading) {}

  /** A request is going to be read. */
  begin(): void {
    this.reading.layouts.tidy();
  }

  /** Adds a span with its SpanStart and SpanEnd. @returns whether it looks as usual, and is looked at now; else nothing is added */
  addSpan(start: number, end: number, chunk: ItemChunk): boolean {
    const { cells, lines } = this.reading;
    const at = chunk.freeCells;
    if (at < 0) return false;
    pointAt(at);
    if (!cells.readSpan(start, end)) return false;
    const linesEnd = lines.span(REGION.lines);
    if (lines.isUnusual) return false;
    this.add(chunk, chunk.reserve(), linesEnd, lines.endLine);
    return true;
  }

  /** Adds a log record of a span, without the span's name, which OTLP does not carry. @returns as `addSpan` */
  addLog(start: number, end: number, chunk: ItemChunk): boolean {
    const { cells, lines } = this.reading;
    const at = chunk.freeCells;
    if (at < 0) return false;
    pointAt(at);
    if (!cells.readLog(start, end)) return false;
    const linesEnd = lines.log(REGION.lines);
    if (lines.isUnusual) return false;
    this.digest(linesEnd);
    const item = chunk.reserve();
    chunk.setField(item, FIELD.digestHigh, this.digester.high);
    chunk.setField(item, FIELD.digestLow, this.digester.low);
    this.add(chunk, item, linesEnd, REGION.lines);
    return true;
  }

  /** Copies the lines into the chunk. */
  private add(chunk: ItemChunk, item: number, linesEnd: number, endLine: number): void {
    const { lines, layouts } = this.reading;
    const { out } = chunk;
    const shift = out.length - REGION.lines;
    LINES.appendTo(out, linesEnd - REGION.lines);
    chunk.setField(item, FIELD.idHigh, cell(Cell.idHigh));
    chunk.setField(item, FIELD.idLow, cell(Cell.idLow));
    chunk.setField(item, FIELD.startLine, REGION.lines + shift);
    chunk.setField(item, FIELD.endLine, endLine + shift);
    chunk.setField(item, FIELD.lineEnd, linesEnd + shift);
    chunk.setField(item, FIELD.nameStart, lines.nameStart + shift);
    chunk.setField(item, FIELD.nameEnd, lines.nameEnd + shift);
    chunk.keep(item, cell(Cell.itemStart), cell(Cell.itemEnd), layouts.layout(cell(Cell.layout)).event.eventType);
  }

  /** Reads what tells the log record whose line was written last from others: see `logDigest`. @param scratch a place behind the line */
  private digest(scratch: number): void {
    const { lines, layouts } = this.reading;
    const { typeName } = layouts.layout(cell(Cell.layout)).event;
    let to = putId(scratch, cell(Cell.idHigh), cell(Cell.idLow));
    view.setUint8(to++, BAR);
    to = copyText(to, lines.timeStart, lines.timeEnd - lines.timeStart);
    view.setUint8(to++, BAR);
    to = copyText(to, typeName.at, typeName.length);
    view.setUint8(to++, BAR);
    to = copyText(to, cell(Cell.textStart), cell(Cell.textEnd) - cell(Cell.textStart));
    this.digester.read(view, scratch, to);
  }
}
