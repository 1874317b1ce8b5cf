import { buffer, isSame, MAX_RECORD_BYTES, SLACK } from '../../record/arena.js';
import { Cell, cell, nanosAt, pointAt, setCell } from '../../record/cells.js';
import { type Digested, logDigest } from '../../record/log-digest.js';
import { spanIdOf } from '../../record/span-id-table.js';
import type { TraceId, UnixNano } from '../../record/telemetry-record.js';
import { ENDED, FIELD, type ItemChunk, LOGGED, STARTED } from './item-chunk.js';
import { CellSink } from './line-cells.js';
import { LineKind, LineScanner } from './line-scanner.js';
import { itemReading } from './read-items.js';

const LINE_FEED = 0x0a;
/** What a record may take beyond its line, see `LineScanner.scan`. */
const MORE_BYTES = 4096 + SLACK;
const TRACE_ID_BYTES = 16;
const TRACE_ID_DIGITS = 32;

/** Reads lines of JSONL into a chunk, those that look as nearly all do; the others are for plain code. */
export class LineChunkReader {
  private readonly reading = itemReading();
  private readonly scanner = new LineScanner(this.reading.layouts, new CellSink());
  /** What is added to an offset of the chunk's lines for that in the arena; `undefined` where they have no room there. */
  private shift: number | undefined;
  private free = 0;
  private roomEnd = 0;
  private linesEnd = 0;
  /** Of the line that was read last that has cells; empty before. */
  traceId = '' as TraceId;
  private traceAt = 0;

  /** @param lines without their line breaks; they are copied */
  begin(chunk: ItemChunk, lines: readonly { readonly bytes: Uint8Array }[]): void {
    this.reading.layouts.tidy();
    const { out } = chunk;
    for (const { bytes } of lines) {
      const { length } = bytes;
      out.reserve(length + 1);
      out.bytes.set(bytes, out.length);
      out.length += length + 1;
      out.bytes[out.length - 1] = LINE_FEED;
    }
    const room = chunk.beginLines();
    this.shift = room?.start;
    this.free = room?.free ?? 0;
    this.roomEnd = room?.end ?? 0;
    this.linesEnd = (room?.start ?? 0) + out.length;
    this.traceId = '' as TraceId;
    this.traceAt = 0;
  }

  /** Adds a line as an item. @param end behind its line break @returns whether it has cells; else nothing was added */
  add(chunk: ItemChunk, start: number, end: number): boolean {
    const { shift, scanner, free } = this;
    if (shift === undefined || end - start > MAX_RECORD_BYTES || free + end - start + MORE_BYTES > this.roomEnd)
      return false;
    const cells = chunk.freeCells;
    if (cells < 0) return false;
    pointAt(cells);
    const kind = scanner.scan(shift + start, this.linesEnd, free);
    if (kind === LineKind.other) return false;
    this.free = scanner.sink.to + SLACK;
    const item = chunk.reserve();
    const isLog = kind === LineKind.log;
    if (isLog && !this.addLog(chunk, item, shift)) return false;
    if (kind === LineKind.start) {
      // A start ends when it begins, for those who ask how long it took.
      setCell(Cell.endLow, cell(Cell.startLow));
      setCell(Cell.endHigh, cell(Cell.startHigh));
    }
    chunk.setField(item, FIELD.parts, isLog ? LOGGED : kind === LineKind.start ? STARTED : ENDED);
    chunk.setField(item, FIELD.idHigh, cell(Cell.idHigh));
    chunk.setField(item, FIELD.idLow, cell(Cell.idLow));
    chunk.setField(item, FIELD.startLine, start);
    chunk.setField(item, FIELD.endLine, kind === LineKind.start ? end : start);
    chunk.setField(item, FIELD.lineEnd, end);
    chunk.setField(item, FIELD.nameStart, scanner.nameAt - shift);
    chunk.setField(item, FIELD.nameEnd, scanner.nameEnd - shift);
    this.noteTrace(shift + start);
    chunk.keep(item, shift + start, shift + end, this.reading.layouts.layout(cell(Cell.layout)).event.eventType);
    return true;
  }

  private addLog(chunk: ItemChunk, item: number, shift: number): boolean {
    const { eventIdStart, eventIdEnd } = this.scanner;
    if (eventIdStart !== 0) {
      // Where it has escapes, it does not stand in its line.
      if (eventIdStart >= this.linesEnd) return false;
      chunk.setField(item, FIELD.eventIdStart, eventIdStart - shift);
      chunk.setField(item, FIELD.eventIdEnd, eventIdEnd - shift);
    }
    const [high, low] = logDigest(this.digested());
    chunk.setField(item, FIELD.digestHigh, high);
    chunk.setField(item, FIELD.digestLow, low);
    return true;
  }

  private digested(): Digested {
    return { ...digestedOfCells(), spanId: spanIdOf(cell(Cell.idHigh), cell(Cell.idLow)) };
  }

  private noteTrace(line: number): void {
    const at = cell(Cell.traceId);
    if (this.traceAt === 0 || !isSame(this.traceAt, at, TRACE_ID_BYTES)) {
      const digits = buffer.indexOf(TRACE_KEY, line) + TRACE_KEY.length;
      this.traceId = buffer.toString('latin1', digits, digits + TRACE_ID_DIGITS) as TraceId;
    }
    this.traceAt = at;
  }
}

const TRACE_KEY = '"trace_id":"';

/** What identifies the log record that is looked at, without its span. */
export function digestedOfCells(): Digested {
  const { eventType } = itemReading().layouts.layout(cell(Cell.layout)).event;
  const body = buffer.toString('utf8', cell(Cell.textStart), cell(Cell.textEnd));
  return { spanId: null, timeUnixNano: nanosAt(Cell.startLow) as UnixNano, eventType, body };
}
