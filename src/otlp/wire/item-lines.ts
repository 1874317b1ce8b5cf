import { digestOf } from '../../record/log-digest.js';
import { isSame, LineBuffer } from '../../record/record-line.js';
import { CELL, type RecordPage } from '../../record/record-page.js';
import { severityNumberOf } from '../../record/severity.js';
import { UNUSUAL } from '../any-value.js';
import { type AttributeSchema, NAME_BEGINNINGS, spanEventType, spanSeverity } from '../attribute-schema.js';
import { type Rejection, severityTextOf, UNNAMED } from '../item-records.js';
import { AttributesLine, FieldPlans, type TypePlan } from './attributes-line.js';
import type { LogSlice, SpanSlice } from './item-slice.js';

const LINE_BREAK = 0x0a;
const CLOSE = 0x7d;
/** More than all fixed parts of a line: keys, ids, times, severity, event type. */
const FIXED_BYTES = 1024;
/** A link: its keys and ids, without its attributes. */
const LINK_BYTES = 128;
const INT64_SIGN = 0x80;
/** How a node's span is named in documentation. */
const DOCUMENTED_NAME = Buffer.from('Node(');

const BEGINNINGS = NAME_BEGINNINGS.map(({ beginning, eventType }) => ({ bytes: Buffer.from(beginning), eventType }));

/**
 * Makes lines of a span's or log record's slice of a request, and its row in the page: what `ItemRecords` makes of the same, for those
 * that look as nearly all of the engine's do. Any other is `UNUSUAL`.
 */
export class ItemLines {
  private readonly plans: FieldPlans;
  private readonly attributes: AttributesLine;
  /** What the digest of a log record is made of. */
  private readonly content = new LineBuffer(4096);

  constructor(private readonly schema: AttributeSchema) {
    this.plans = new FieldPlans(schema);
    this.attributes = new AttributesLine(this.plans);
  }

  /** Adds a span with its SpanStart and SpanEnd. @returns why not @throws UNUSUAL */
  addSpan(span: SpanSlice, from: Buffer, page: RecordPage): Rejection | undefined {
    if (span.traceId < 0 || span.spanId < 0) return 'without a valid trace id and span id';
    if (span.hasOddId) return 'with an id of a wrong length';
    if (isBeyondInt64(from, span.startTime) || isBeyondInt64(from, span.endTime)) return 'with a time beyond int64';
    const type = this.typeByBeginning(from, span) ?? this.typeByName(from, span);
    if (type.hasSpecialStart || startsWith(from, span, DOCUMENTED_NAME)) throw UNUSUAL;
    this.attributes.plan(from, span.attributes, type);
    this.addRow(page, (at) => this.writeSpan(span, type, from, page, at));
    return undefined;
  }

  /** Adds a log record, without its span's name, which OTLP does not carry. @returns why not @throws UNUSUAL */
  addLog(log: LogSlice, from: Buffer, page: RecordPage): Rejection | undefined {
    if (log.traceId < 0) return 'without a valid trace id and span id';
    if (isBeyondInt64(from, log.time)) return 'with a time beyond int64';
    const type =
      log.eventNameEnd === log.eventNameStart
        ? this.plans.type(UNNAMED)
        : this.plans.type(this.plans.key(from, log.eventNameStart, log.eventNameEnd).name);
    this.attributes.plan(from, log.attributes, type);
    this.addRow(page, (at) => this.writeLog(log, type, from, page, at));
    return undefined;
  }

  /** Nothing of a row stays that cannot be written whole. */
  private addRow(page: RecordPage, write: (at: number) => void): void {
    const begin = page.out.length;
    const at = page.reserve();
    try {
      write(at);
    } catch (error) {
      page.out.length = begin;
      throw error;
    }
    page.rowCount += 1;
  }

  private writeSpan(span: SpanSlice, type: TypePlan, from: Buffer, page: RecordPage, at: number): void {
    const { cells, out } = page;
    writeIds(cells, at, from, span);
    cells[at + CELL.statusCode] = span.statusCode;
    if (span.statusCode < 0) cells[at + CELL.isSpecial] = 1;
    cells[at + CELL.eventType] = page.indexOfType(type.eventType);
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
    const severity = spanSeverity(type.shortType, (name, text) =>
      this.attributes.isText(from, span.attributes, name, text),
    );
    const tail = type.tail(severity);
    out.reserve(tail.length);
    out.copyLong(tail);
    const typeEnd = out.length;
    const severityEnd = typeEnd - type.eventTypeHead.length;
    this.attributes.writeStart(out, from, span.attributes);
    out.reserve(FIXED_BYTES + (headEnd - head));
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
    this.attributes.writeEnd(out, from, span.attributes, page, at);
    out.reserve(2);
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;
    cells[at + CELL.lineEnd] = out.length;
  }

  private writeLog(log: LogSlice, type: TypePlan, from: Buffer, page: RecordPage, at: number): void {
    const { cells, out } = page;
    cells[at + CELL.isLog] = 1;
    cells[at + CELL.eventType] = page.indexOfType(type.eventType);
    // What one of the two leaves open, the other says.
    const hasText = log.severityEnd > log.severityStart;
    const isNumberMissing = log.severityNumber === 0 && hasText;
    const severityNumber = isNumberMissing
      ? severityNumberOf(from.toString('utf8', log.severityStart, log.severityEnd))
      : log.severityNumber;
    cells[at + CELL.severityNumber] = severityNumber;
    if (log.time >= 0) {
      cells[at + CELL.startTimeLow] = cells[at + CELL.endTimeLow] = uint32le(from, log.time);
      cells[at + CELL.startTimeHigh] = cells[at + CELL.endTimeHigh] = uint32le(from, log.time + 4);
    }
    cells[at + CELL.startLine] = cells[at + CELL.endLine] = out.length;
    out.reserve(FIXED_BYTES);
    out.ascii('{"record_type":"LogRecord","trace_id":"');
    out.hex(from, log.traceId, log.traceId + 16);
    const { content } = this;
    content.length = 0;
    if (log.spanId < 0) {
      out.ascii('","span_id":null,"span_name":');
      content.ascii('null');
    } else {
      cells[at + CELL.idHigh] = uint32(from, log.spanId);
      cells[at + CELL.idLow] = uint32(from, log.spanId + 4);
      out.ascii('","span_id":"');
      out.hex(from, log.spanId, log.spanId + 8);
      content.hex(from, log.spanId, log.spanId + 8);
      out.ascii('","span_name":');
    }
    cells[at + CELL.nameStart] = out.length;
    out.ascii('null');
    cells[at + CELL.nameEnd] = out.length;
    out.ascii(',"event_id":null,"time_unix_nano":"');
    const time = out.length;
    out.decimal(cells[at + CELL.startTimeLow] as number, cells[at + CELL.startTimeHigh] as number);
    content.ascii('|');
    content.copyFrom(out.bytes, time, out.length);
    out.ascii(`","severity_number":${severityNumber},"severity_text":`);
    if (hasText) out.jsonString(from, log.severityStart, log.severityEnd);
    else out.utf8(`"${severityTextOf(log.severityNumber)}"`);
    out.reserve(FIXED_BYTES);
    out.ascii(',"body":');
    out.jsonString(from, log.bodyStart, log.bodyEnd);
    out.reserve(type.eventTypeHead.length + 1);
    out.ascii(',');
    out.copyLong(type.eventTypeHead);
    this.attributes.writeAll(out, from, log.attributes, page, at);
    out.reserve(2);
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;
    cells[at + CELL.lineEnd] = out.length;

    content.reserve(type.eventTypeBytes.length + 2 + 3 * (log.bodyEnd - log.bodyStart));
    content.ascii('|');
    content.copyLong(type.eventTypeBytes);
    content.ascii('|');
    if (isAscii(from, log.bodyStart, log.bodyEnd)) content.copyFrom(from, log.bodyStart, log.bodyEnd);
    else content.utf8(from.toString('utf8', log.bodyStart, log.bodyEnd));
    const [digestHigh, digestLow] = digestOf(content.bytes.subarray(0, content.length));
    cells[at + CELL.digestHigh] = digestHigh;
    cells[at + CELL.digestLow] = digestLow;
  }

  /** Most names tell by how they begin, which takes no string. */
  private typeByBeginning(from: Buffer, span: SpanSlice): TypePlan | undefined {
    for (const { bytes, eventType } of BEGINNINGS) {
      if (from[span.nameStart] === bytes[0] && startsWith(from, span, bytes)) return this.plans.type(eventType);
    }
    return undefined;
  }

  private typeByName(from: Buffer, span: SpanSlice): TypePlan {
    const name = from.toString('utf8', span.nameStart, span.nameEnd);
    return this.plans.type(spanEventType(name, () => this.keysOf(span, from), this.schema.spanShapes));
  }

  private keysOf(span: SpanSlice, from: Buffer): readonly { readonly key: string }[] {
    const { count, keyStart, keyEnd } = span.attributes;
    return Array.from({ length: count }, (_, index) => ({
      key: this.plans.key(from, keyStart[index] as number, keyEnd[index] as number).name,
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
  if (span.startTime >= 0) {
    cells[at + CELL.startTimeLow] = uint32le(from, span.startTime);
    cells[at + CELL.startTimeHigh] = uint32le(from, span.startTime + 4);
  }
  if (span.endTime >= 0) {
    cells[at + CELL.endTimeLow] = uint32le(from, span.endTime);
    cells[at + CELL.endTimeHigh] = uint32le(from, span.endTime + 4);
  }
}

/** Whether the time that stands there is more than a record can hold; -1 for none. */
function isBeyondInt64(from: Buffer, time: number): boolean {
  return time >= 0 && ((from[time + 7] as number) & INT64_SIGN) !== 0;
}

function startsWith(from: Buffer, { nameStart, nameEnd }: SpanSlice, beginning: Buffer): boolean {
  if (nameEnd - nameStart < beginning.length) return false;
  return isSame(beginning, from, nameStart, nameStart + beginning.length);
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

function isAscii(from: Buffer, start: number, end: number): boolean {
  for (let index = start; index < end; index++) if ((from[index] as number) >= 0x80) return false;
  return true;
}

function writeLinks(out: LineBuffer, from: Buffer, span: SpanSlice, cells: Uint32Array, at: number): void {
  if (span.links.length === 0) {
    out.ascii('null');
    return;
  }
  let before = '[';
  for (const { traceId, spanId } of span.links) {
    out.reserve(LINK_BYTES);
    out.ascii(before);
    before = ',';
    out.ascii('{"trace_id":"');
    out.hex(from, traceId, traceId + 16);
    out.ascii('","span_id":"');
    out.hex(from, spanId, spanId + 8);
    out.ascii('","attributes":{}}');
    if (!isSameBytes(from, traceId, span.traceId, 16)) continue;
    if (cells[at + CELL.linkHigh] !== 0 || cells[at + CELL.linkLow] !== 0) cells[at + CELL.isSpecial] = 1;
    cells[at + CELL.linkHigh] = uint32(from, spanId);
    cells[at + CELL.linkLow] = uint32(from, spanId + 4);
  }
  out.reserve(FIXED_BYTES);
  out.ascii(']');
}

function isSameBytes(bytes: Buffer, a: number, b: number, length: number): boolean {
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
