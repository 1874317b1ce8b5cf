import { isSame } from '../../record/same-bytes.js';
import { CELL, CELLS_PER_SPAN, type SpanPage } from '../../record/span-page.js';
import type { AttributeSchema } from '../attribute-schema.js';
import { NAME_BEGINNINGS, spanEventType } from '../span-event-type.js';
import { spanSeverity } from '../span-severity.js';
import { AttributesLine } from './attributes-line.js';
import { FieldPlans, type TypePlan } from './field-plan.js';
import type { LineBuffer } from './line-buffer.js';
import type { SpanSlice } from './span-slice.js';
import { UNUSUAL } from './wire-cursor.js';

const LINE_BREAK = 0x0a;
const CLOSE = 0x7d;
/** More than all fixed parts of a line: keys, ids, times, severity, event type. */
const FIXED_BYTES = 1024;
/** A link: its keys and ids. */
const LINK_BYTES = 128;
const INT64_SIGN = 0x80;

const BEGINNINGS = NAME_BEGINNINGS.map(({ beginning, eventType }) => ({ bytes: Buffer.from(beginning), eventType }));

/** Makes a span's two lines of its slice of a request, and its cells in the page. */
export class SpanLines {
  private readonly plans: FieldPlans;
  private readonly attributes: AttributesLine;

  constructor(private readonly schema: AttributeSchema) {
    this.plans = new FieldPlans(schema);
    this.attributes = new AttributesLine(this.plans);
  }

  /**
   * Appends the span's SpanStart and SpanEnd to the lines, and the span to the page.
   * @throws UNUSUAL
   */
  add(span: SpanSlice, from: Buffer, out: LineBuffer, page: SpanPage): void {
    // A time beyond int64 is for the general decoder to reject.
    if ((((from[span.startTime + 7] as number) | (from[span.endTime + 7] as number)) & INT64_SIGN) !== 0) throw UNUSUAL;
    const type = this.typeByBeginning(from, span) ?? this.typeByName(from, span);
    if (type.hasSpecialStart) throw UNUSUAL;
    this.attributes.plan(from, span, type);

    const begin = out.length;
    const cells = page.reserve();
    try {
      this.addLines(span, type, from, out, page, cells);
    } catch (error) {
      out.length = begin;
      throw error;
    }
    page.spanCount += 1;
  }

  private addLines(span: SpanSlice, type: TypePlan, from: Buffer, out: LineBuffer, page: SpanPage, at: number): void {
    const { cells } = page;
    cells.fill(0, at, at + CELLS_PER_SPAN);
    writeIds(cells, at, from, span);
    cells[at + CELL.statusCode] = span.statusCode;
    cells[at + CELL.eventType] = indexIn(page.eventTypes, type.eventType);

    out.reserve(FIXED_BYTES + (span.nameEnd - span.nameStart) * 6);
    cells[at + CELL.startLine] = out.length;
    out.ascii('{"record_type":"SpanStart",');
    const head = out.length;
    this.writeHead(out, from, span, cells, at);
    const headEnd = out.length;
    out.ascii('null,"start_time_unix_nano":"');
    const startTime = out.length;
    out.decimal(cells[at + CELL.startTimeLow] as number, cells[at + CELL.startTimeHigh] as number);
    const startTimeEnd = out.length;
    const severity = spanSeverity(type.shortType, (name, text) => this.attributes.isText(from, span, name, text));
    const tail = type.tail(severity);
    out.reserve(tail.length);
    out.copyLong(tail);
    const typeEnd = out.length;
    const severityEnd = typeEnd - type.eventTypeHead.length;
    this.attributes.writeStart(out, from, span);
    out.reserve(FIXED_BYTES + (headEnd - head) + span.linkCount * LINK_BYTES);
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;

    // The end begins as the start does; what both have is copied.
    cells[at + CELL.endLine] = out.length;
    out.ascii('{"record_type":"SpanEnd",');
    out.repeat(head, headEnd);
    writeLinks(out, from, span, cells, at);
    out.ascii(',"start_time_unix_nano":"');
    out.repeat(startTime, startTimeEnd);
    out.ascii('","end_time_unix_nano":"');
    out.decimal(cells[at + CELL.endTimeLow] as number, cells[at + CELL.endTimeHigh] as number);
    out.repeat(startTimeEnd, severityEnd);
    writeStatus(out, from, span);
    out.repeat(severityEnd, typeEnd);
    this.attributes.writeEnd(out, from, span, page, at);
    out.reserve(2);
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;
    cells[at + CELL.lineEnd] = out.length;
  }

  /** Most names tell by how they begin, which takes no string. */
  private typeByBeginning(from: Buffer, { nameStart, nameEnd }: SpanSlice): TypePlan | undefined {
    for (const { bytes, eventType } of BEGINNINGS) {
      if (from[nameStart] !== bytes[0] || nameEnd - nameStart < bytes.length) continue;
      if (isSame(bytes, from, nameStart, nameStart + bytes.length)) return this.plans.type(eventType);
    }
    return undefined;
  }

  private typeByName(from: Buffer, span: SpanSlice): TypePlan {
    const name = from.toString('utf8', span.nameStart, span.nameEnd);
    if (name.startsWith('Node(')) throw UNUSUAL;
    return this.plans.type(spanEventType(name, () => this.keysOf(span, from), this.schema.spanShapes));
  }

  private keysOf(span: SpanSlice, from: Buffer): readonly { readonly key: string }[] {
    return Array.from({ length: span.attributeCount }, (_, index) => ({
      key: this.plans.key(from, span.keyStart[index] as number, span.keyEnd[index] as number).name,
    }));
  }

  private writeHead(out: LineBuffer, from: Buffer, span: SpanSlice, cells: Uint32Array, at: number): void {
    out.ascii('"trace_id":"');
    out.hex(from, span.traceId, span.traceId + 16);
    out.ascii('","span_id":"');
    out.hex(from, span.spanId, span.spanId + 8);
    out.ascii('","span_name":');
    cells[at + CELL.nameStart] = out.length;
    out.jsonString(from, span.nameStart, span.nameEnd);
    cells[at + CELL.nameEnd] = out.length;
    out.reserve(FIXED_BYTES);
    if (span.parentSpanId < 0) out.ascii(',"parent_span_id":null,"links":');
    else {
      out.ascii(',"parent_span_id":"');
      out.hex(from, span.parentSpanId, span.parentSpanId + 8);
      out.ascii('","links":');
    }
  }
}

function writeIds(cells: Uint32Array, at: number, from: Buffer, span: SpanSlice): void {
  cells[at + CELL.idHigh] = uint32(from, span.spanId);
  cells[at + CELL.idLow] = uint32(from, span.spanId + 4);
  if (span.parentSpanId >= 0) {
    cells[at + CELL.parentHigh] = uint32(from, span.parentSpanId);
    cells[at + CELL.parentLow] = uint32(from, span.parentSpanId + 4);
  }
  cells[at + CELL.startTimeLow] = uint32le(from, span.startTime);
  cells[at + CELL.startTimeHigh] = uint32le(from, span.startTime + 4);
  cells[at + CELL.endTimeLow] = uint32le(from, span.endTime);
  cells[at + CELL.endTimeHigh] = uint32le(from, span.endTime + 4);
}

/** Big-endian, as ids are; `readUInt32BE` without its checks. */
function uint32(from: Buffer, at: number): number {
  const high = ((from[at] as number) << 8) | (from[at + 1] as number);
  const low = ((from[at + 2] as number) << 8) | (from[at + 3] as number);
  return ((high << 16) | low) >>> 0;
}

/** Little-endian, as fixed64 is. */
function uint32le(from: Buffer, at: number): number {
  const low = ((from[at + 1] as number) << 8) | (from[at] as number);
  const high = ((from[at + 3] as number) << 8) | (from[at + 2] as number);
  return ((high << 16) | low) >>> 0;
}

function indexIn(eventTypes: string[], eventType: string): number {
  const known = eventTypes.indexOf(eventType);
  return known >= 0 ? known : eventTypes.push(eventType) - 1;
}

function writeLinks(out: LineBuffer, from: Buffer, span: SpanSlice, cells: Uint32Array, at: number): void {
  if (span.linkCount === 0) {
    out.ascii('null');
    return;
  }
  out.ascii('[');
  for (let index = 0; index < span.linkCount; index++) {
    const traceId = span.links[2 * index] as number;
    const spanId = span.links[2 * index + 1] as number;
    out.ascii(index === 0 ? '{"trace_id":"' : ',{"trace_id":"');
    out.hex(from, traceId, traceId + 16);
    out.ascii('","span_id":"');
    out.hex(from, spanId, spanId + 8);
    out.ascii('","attributes":{}}');
    if (!isSameStretch(from, traceId, span.traceId, 16)) continue;
    if (cells[at + CELL.linkHigh] !== 0 || cells[at + CELL.linkLow] !== 0) cells[at + CELL.isSpecial] = 1;
    cells[at + CELL.linkHigh] = uint32(from, spanId);
    cells[at + CELL.linkLow] = uint32(from, spanId + 4);
  }
  out.ascii(']');
}

function isSameStretch(bytes: Buffer, a: number, b: number, length: number): boolean {
  for (let index = 0; index < length; index++) if (bytes[a + index] !== bytes[b + index]) return false;
  return true;
}

function writeStatus(out: LineBuffer, from: Buffer, span: SpanSlice): void {
  const hasMessage = span.messageEnd > span.messageStart;
  if (span.statusCode === 0 && !hasMessage) {
    out.ascii('"status":null,');
    return;
  }
  out.ascii('"status":{"message":');
  if (hasMessage) out.jsonString(from, span.messageStart, span.messageEnd);
  else out.ascii('null');
  out.reserve(FIXED_BYTES);
  out.ascii(`,"code":${span.statusCode}},`);
}
