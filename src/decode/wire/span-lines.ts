import { Attributes } from '../../record/attributes.js';
import type { SpanId, TraceId } from '../../record/ids.js';
import type { SpanLink, SpanStatus, TelemetryRecord } from '../../record/telemetry-record.js';
import type { AttributeSchema } from '../attribute-schema.js';
import { spanEventType } from '../span-event-type.js';
import { spanSeverity } from '../span-severity.js';
import { AttributesLine } from './attributes-line.js';
import { FieldPlans, isSame, type TypePlan } from './field-plan.js';
import type { LineBuffer } from './line-buffer.js';
import type { SpanSlice } from './span-slice.js';
import { UNUSUAL } from './wire-cursor.js';
import { wireSpanEnd, wireSpanStart } from './wire-record.js';

const LINE_BREAK = 0x0a;
const CLOSE = 0x7d;
/** More than all fixed parts of a line: keys, ids, times, severity, event type. */
const FIXED_BYTES = 1024;
/** A link: its keys and ids. */
const LINK_BYTES = 128;
const INT64_SIGN = 0x80;

/** Makes a span's two lines and records of its slice of a request. */
export class SpanLines {
  private readonly plans: FieldPlans;
  private readonly attributes: AttributesLine;
  /** The trace id that came last, and its bytes: nearly always the next span's too. */
  private traceId = '' as TraceId;
  private readonly traceIdBytes = Buffer.alloc(16);

  constructor(private readonly schema: AttributeSchema) {
    this.plans = new FieldPlans(schema);
    this.attributes = new AttributesLine(this.plans);
  }

  /** Appends the span's SpanStart and SpanEnd to `records`, their lines to `out`. @throws UNUSUAL */
  add(span: SpanSlice, from: Buffer, out: LineBuffer, records: TelemetryRecord[]): void {
    // A time beyond int64 is for the general decoder to reject.
    if ((((from[span.startTime + 7] as number) | (from[span.endTime + 7] as number)) & INT64_SIGN) !== 0) throw UNUSUAL;
    const spanName = from.toString('utf8', span.nameStart, span.nameEnd);
    if (spanName.startsWith('Node(')) throw UNUSUAL;
    const type = this.typeOf(spanName, span, from);
    if (type.hasSpecialStart) throw UNUSUAL;
    this.attributes.plan(from, span, type);

    // Both lines begin alike up to `links`; the end's is written first, the start's copied from it where they agree.
    const begin = out.length;
    try {
      this.addLines(span, spanName, type, from, out, records);
    } catch (error) {
      out.length = begin;
      throw error;
    }
  }

  private addLines(
    span: SpanSlice,
    spanName: string,
    type: TypePlan,
    from: Buffer,
    out: LineBuffer,
    records: TelemetryRecord[],
  ): void {
    out.reserve(FIXED_BYTES + (span.nameEnd - span.nameStart) * 6 + span.linkCount * LINK_BYTES);
    const endLine = out.length;
    out.ascii('{"record_type":"SpanEnd",');
    const head = out.length;
    this.writeHead(out, from, span);
    const headEnd = out.length;
    const links = writeLinks(out, from, span);
    out.ascii(',"start_time_unix_nano":"');
    const startTime = out.length;
    out.decimal(from.readUInt32LE(span.startTime), from.readUInt32LE(span.startTime + 4));
    const startTimeEnd = out.length;
    out.ascii('","end_time_unix_nano":"');
    out.decimal(from.readUInt32LE(span.endTime), from.readUInt32LE(span.endTime + 4));
    const severityStart = out.length;
    const severity = spanSeverity(type.shortType, (name, text) => this.attributes.isText(from, span, name, text));
    out.ascii('","severity_number":');
    out.ascii(String(severity.number));
    out.ascii(',"severity_text":"');
    out.ascii(severity.text);
    out.ascii('",');
    const severityEnd = out.length;
    const status = writeStatus(out, from, span);
    const typeStart = out.length;
    out.utf8(`"event_type":${type.eventTypeJson},"attributes":`);
    const endAttributes = out.length;
    this.attributes.writeEnd(out, from, span);
    const endAttributesEnd = out.length;
    out.reserve(endAttributesEnd - endLine + FIXED_BYTES);
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;

    const startLine = out.length;
    out.ascii('{"record_type":"SpanStart",');
    out.repeat(head, headEnd);
    out.ascii('null,"start_time_unix_nano":"');
    out.repeat(startTime, startTimeEnd);
    out.repeat(severityStart, severityEnd);
    out.repeat(typeStart, endAttributes);
    const startAttributes = out.length;
    if (type.hasOwnStart) this.attributes.writeStart(out);
    else out.repeat(endAttributes, endAttributesEnd);
    const startAttributesEnd = out.length;
    out.bytes[out.length++] = CLOSE;
    out.bytes[out.length++] = LINE_BREAK;

    const common = {
      traceId: this.traceIdOf(from, span.traceId),
      spanId: from.toString('hex', span.spanId, span.spanId + 8) as SpanId,
      parentSpanId:
        span.parentSpanId < 0 ? null : (from.toString('hex', span.parentSpanId, span.parentSpanId + 8) as SpanId),
      spanName,
      startTimeUnixNano: from.readBigUInt64LE(span.startTime),
      severityNumber: severity.number,
      severityText: severity.text,
      eventType: type.eventType,
    };
    const { bytes } = out;
    records.push(
      wireSpanStart(common, {
        bytes,
        start: startLine,
        end: out.length,
        attributesStart: startAttributes,
        attributesEnd: startAttributesEnd,
      }),
      wireSpanEnd(common, from.readBigUInt64LE(span.endTime), status, links, {
        bytes,
        start: endLine,
        end: startLine,
        attributesStart: endAttributes,
        attributesEnd: endAttributesEnd,
      }),
    );
  }

  private typeOf(spanName: string, span: SpanSlice, from: Buffer): TypePlan {
    return this.plans.type(spanEventType(spanName, () => this.keysOf(span, from), this.schema.spanShapes));
  }

  private keysOf(span: SpanSlice, from: Buffer): readonly { readonly key: string }[] {
    return Array.from({ length: span.attributeCount }, (_, index) => ({
      key: this.plans.key(from, span.keyStart[index] as number, span.keyEnd[index] as number).name,
    }));
  }

  private writeHead(out: LineBuffer, from: Buffer, span: SpanSlice): void {
    out.ascii('"trace_id":"');
    out.hex(from, span.traceId, span.traceId + 16);
    out.ascii('","span_id":"');
    out.hex(from, span.spanId, span.spanId + 8);
    out.ascii('","span_name":');
    out.jsonString(from, span.nameStart, span.nameEnd);
    out.reserve(FIXED_BYTES + span.linkCount * LINK_BYTES);
    if (span.parentSpanId < 0) out.ascii(',"parent_span_id":null,"links":');
    else {
      out.ascii(',"parent_span_id":"');
      out.hex(from, span.parentSpanId, span.parentSpanId + 8);
      out.ascii('","links":');
    }
  }

  private traceIdOf(from: Buffer, start: number): TraceId {
    if (this.traceId === '' || !isSame(this.traceIdBytes, from, start, start + 16)) {
      from.copy(this.traceIdBytes, 0, start, start + 16);
      this.traceId = this.traceIdBytes.toString('hex') as TraceId;
    }
    return this.traceId;
  }
}

function writeLinks(out: LineBuffer, from: Buffer, span: SpanSlice): readonly SpanLink[] | null {
  if (span.linkCount === 0) {
    out.ascii('null');
    return null;
  }
  const links: SpanLink[] = [];
  out.ascii('[');
  for (let index = 0; index < span.linkCount; index++) {
    const traceId = span.links[2 * index] as number;
    const spanId = span.links[2 * index + 1] as number;
    out.ascii(index === 0 ? '{"trace_id":"' : ',{"trace_id":"');
    out.hex(from, traceId, traceId + 16);
    out.ascii('","span_id":"');
    out.hex(from, spanId, spanId + 8);
    out.ascii('","attributes":{}}');
    links.push({
      traceId: from.toString('hex', traceId, traceId + 16) as TraceId,
      spanId: from.toString('hex', spanId, spanId + 8) as SpanId,
      attributes: Attributes.EMPTY,
    });
  }
  out.ascii(']');
  return links;
}

function writeStatus(out: LineBuffer, from: Buffer, span: SpanSlice): SpanStatus | null {
  const hasMessage = span.messageEnd > span.messageStart;
  if (span.statusCode === 0 && !hasMessage) {
    out.ascii('"status":null,');
    return null;
  }
  out.ascii('"status":{"message":');
  if (hasMessage) out.jsonString(from, span.messageStart, span.messageEnd);
  else out.ascii('null');
  out.reserve(FIXED_BYTES);
  out.ascii(`,"code":${span.statusCode}},`);
  return {
    message: hasMessage ? from.toString('utf8', span.messageStart, span.messageEnd) : null,
    code: span.statusCode,
  };
}
