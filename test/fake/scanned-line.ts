import { PublicAttributeSchema } from '../../src/otlp/attribute-schema.js';
import { PublicSchema } from '../../src/otlp/public-schema.js';
import { ItemCells } from '../../src/otlp/wire/item-cells.js';
import { Layouts } from '../../src/otlp/wire/layouts.js';
import { CellSink } from '../../src/otlp/wire/line-cells.js';
import { ItemSink } from '../../src/otlp/wire/line-items.js';
import { LineKind, LineScanner } from '../../src/otlp/wire/line-scanner.js';
import { LineWriter } from '../../src/otlp/wire/line-writer.js';
import { buffer, REGION, SLACK } from '../../src/record/arena.js';
import { ATTRIBUTE_CELLS, Attribute, Cell, cell, HEADER } from '../../src/record/cells.js';
import type { Signal } from '../../src/record/record-batch.js';
import { tryParseRecordLine } from '../../src/record/record-line.js';

/** What the bytes round a line and an item are; nobody may rely on them, nor change those before and behind. */
const FILLING = 0x41;
const MARGIN = 64;
/** What a scanner writes at most beyond the length of the line. */
const ROOM = 4096;

const schema = new PublicAttributeSchema(PublicSchema.load());
const layouts = new Layouts(schema);
const items = new ItemCells(layouts);
const writer = new LineWriter(layouts);
const scanner = new LineScanner(layouts, new ItemSink());
const cellScanner = new LineScanner(layouts, new CellSink());

/** What a scanner made of a line. */
export interface ScannedLine {
  readonly kind: number;
  /** The line that is written of the item, its bytes as latin1; `undefined` where it is of another kind, or looks otherwise than nearly all do. */
  readonly written: string | undefined;
  /** What the cells of the item say; empty where there are none. */
  readonly cells: readonly (number | string)[];
  readonly id: string;
}

/**
 * Scans a line and reads the item that comes of it.
 * @param line with its break, if it has one
 * @param isLast the line stands at the very end of the arena
 * @throws Error when something was written before the item, or so far behind it as none may be
 */
export function scanLine(line: Uint8Array, isLast = false): ScannedLine {
  layouts.tidy();
  const start = isLast ? REGION.end - line.length : REGION.bodies;
  const to = REGION.items + MARGIN;
  const end = to + line.length + ROOM;
  buffer.fill(FILLING, REGION.items, end + MARGIN);
  buffer.set(line, start);
  if (!isLast) buffer.fill(FILLING, start + line.length, start + line.length + MARGIN);
  const kind = scanner.scan(start, start + line.length, to);
  const margins = Buffer.concat([buffer.subarray(REGION.items, to), buffer.subarray(end, end + MARGIN)]);
  if (margins.some((byte) => byte !== FILLING)) throw new Error('written beyond its room');
  const { start: itemStart, to: itemEnd } = scanner.sink;
  if (itemStart !== to || itemEnd < to || itemEnd > end) throw new Error('no place of an item');
  if (Buffer.compare(buffer.subarray(start, start + line.length), line) !== 0) throw new Error('the line was changed');
  const signal = kind === LineKind.span ? 'traces' : kind === LineKind.log ? 'logs' : undefined;
  const item = signal === undefined ? undefined : readItem(signal, itemStart, itemEnd);
  // Nobody writes the line again, so nothing may turn out only then.
  if (item?.isUnusual === true) throw new Error('the cells do not tell what the line says');
  return {
    kind,
    written: item?.line,
    cells: item?.cells ?? [],
    id: Buffer.from(new Int32Array([scanner.idLow, scanner.idHigh]).buffer)
      .reverse()
      .toString('hex'),
  };
}

/** The same without an item: what the line's own cells say. @returns the kind, and the line that is written of them; of a start none */
function scanCells(line: Uint8Array, isLast: boolean): { readonly kind: number; readonly written: string | undefined } {
  layouts.tidy();
  // Who writes the values again may read a little behind them.
  const start = isLast ? REGION.end - SLACK - line.length : REGION.bodies;
  const to = REGION.items + MARGIN;
  const end = to + line.length + ROOM;
  buffer.fill(FILLING, REGION.items, end + MARGIN);
  buffer.set(line, start);
  if (!isLast) buffer.fill(FILLING, start + line.length, start + line.length + MARGIN);
  const kind = cellScanner.scan(start, start + line.length, to);
  const margins = Buffer.concat([buffer.subarray(REGION.items, to), buffer.subarray(end, end + MARGIN)]);
  if (margins.some((byte) => byte !== FILLING)) throw new Error('written beyond its room');
  if (Buffer.compare(buffer.subarray(start, start + line.length), line) !== 0) throw new Error('the line was changed');
  if (kind === LineKind.other || kind === LineKind.start) return { kind, written: undefined };
  const linesEnd = kind === LineKind.span ? writer.span(REGION.lines) : writer.log(REGION.lines);
  if (writer.isUnusual) throw new Error('the cells do not tell what the line says');
  const lineStart = kind === LineKind.span ? writer.endLine : REGION.lines;
  return { kind, written: buffer.toString('latin1', lineStart, linesEnd) };
}

/** An item on the wire as its lines (of a span its end is `line`) and its cells; `undefined` where it looks otherwise than nearly all do. */
export function readWireItem(signal: Signal, item: Uint8Array): ReturnType<typeof readItem> {
  layouts.tidy();
  buffer.set(item, REGION.bodies);
  const found = readItem(signal, REGION.bodies, REGION.bodies + item.length);
  return found?.isUnusual === true ? undefined : found;
}

function readItem(signal: Signal, start: number, end: number) {
  if (!(signal === 'traces' ? items.readSpan(start, end) : items.readLog(start, end))) return undefined;
  const linesEnd = signal === 'traces' ? writer.span(REGION.lines) : writer.log(REGION.lines);
  const lineStart = signal === 'traces' ? writer.endLine : REGION.lines;
  const startLine = signal === 'traces' ? buffer.toString('latin1', REGION.lines, lineStart) : undefined;
  const line = buffer.toString('latin1', lineStart, linesEnd);
  return { line, startLine, cells: readCells(), isUnusual: writer.isUnusual };
}

/** What the cells of the record say, places as what stands there. */
function readCells(): readonly (number | string)[] {
  const text = (start: number, end: number) => buffer.toString('utf8', cell(start), cell(end));
  const plain = [
    ...[Cell.layout, Cell.idHigh, Cell.idLow, Cell.parentHigh, Cell.parentLow, Cell.startLow, Cell.startHigh],
    ...[Cell.endLow, Cell.endHigh, Cell.code, Cell.linkHigh, Cell.linkLow, Cell.attributeCount],
  ].map(cell);
  const trace = buffer.toString('hex', cell(Cell.traceId), cell(Cell.traceId) + 16);
  const texts = [text(Cell.textStart, Cell.textEnd), text(Cell.messageStart, Cell.messageEnd)];
  const attributes = Array.from({ length: cell(Cell.attributeCount) }, (_, index) => {
    const at = HEADER + index * ATTRIBUTE_CELLS;
    const value = buffer.toString('hex', cell(at + Attribute.valueStart), cell(at + Attribute.valueEnd));
    const whole = buffer.toString('hex', cell(at + Attribute.start), cell(at + Attribute.valueEnd));
    // The tag of a span's attribute is another than that of a log record's.
    return [cell(at + Attribute.kind), value, whole];
  });
  return [...plain, trace, ...texts, ...attributes.flat()];
}

/** A log record's line whose event has an id. */
const EVENT_ID = /^\{"record_type":"LogRecord",.*"event_id":"/s;

const SPAN_NAME_OF_LOG =
  /^(\{"record_type":"LogRecord","trace_id":"[0-9a-f]{32}","span_id":"[0-9a-f]{16}","span_name":)(?:null|"(?:[^"\\]|\\.)*")(?=,"event_id":null,"time_unix_nano":")/s;

/** A line, its bytes as latin1, without what an item on the wire does not carry. */
export function onWire(line: string): string {
  return line.replace(SPAN_NAME_OF_LOG, (_all, head: string) => `${head}null`);
}

/** What is wrong with how a line was scanned; `undefined` for nothing: what is read of it at all is the very line. */
export function misscan(line: Uint8Array, isLast = false): string | undefined {
  const text = Buffer.from(line).toString('latin1');
  const { kind, written, id } = scanLine(line, isLast);
  const own = scanCells(line, isLast);
  if (written !== undefined && (own.kind !== kind || own.written !== written))
    return `${own.written} by cells: ${text}`;
  // What an item cannot say, lines can: an event's id.
  const wasRead = own.kind !== LineKind.other && own.kind !== LineKind.start;
  if (written === undefined && wasRead && !EVENT_ID.test(text)) return `cells of ${text}`;
  if (kind === LineKind.other || (written === undefined && kind !== LineKind.start)) return undefined;
  if (kind === LineKind.start) {
    const head = /^\{"record_type":"SpanStart","trace_id":"[0-9a-f]{32}","span_id":"([0-9a-f]{16})","span_name":"/.exec(
      text,
    );
    return head?.[1] === id ? undefined : `no start of ${id}: ${text}`;
  }
  const record = tryParseRecordLine(Buffer.from(line).toString('utf8').slice(0, -1));
  if (record === undefined) return `no record: ${text}`;
  if (record.recordType !== (kind === LineKind.span ? 'SpanEnd' : 'LogRecord')) return `no ${kind}: ${text}`;
  if (record.recordType === 'SpanEnd' && record.spanId !== id) return `not of ${id}: ${text}`;
  return onWire(text) === written ? undefined : `${written} instead of ${text}`;
}
