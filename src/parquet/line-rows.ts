import { isUtf8 } from 'node:buffer';
import { ByteSource } from '../core/bytes.js';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/attributes.js';
import { formatRecordLine, parseRecordLine, RecordParseError } from '../record/record-line.js';
import { severityNumberOf } from '../record/severity.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { type AttributePlan, AttributePlans } from './attribute-plan.js';
import { ByteCursor, type TextSlice, textSlice } from './byte-cursor.js';
import { ByteBuffer } from './bytes.js';
import { ConstantText } from './column.js';
import type { RowGroupColumns } from './row-group.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const END = 0x7d;

const keys = ByteSource.of;
const NULL = keys('null');
const SPAN_START = keys('{"record_type":"SpanStart","trace_id":"');
const SPAN_END = keys('{"record_type":"SpanEnd","trace_id":"');
const LOG_RECORD = keys('{"record_type":"LogRecord","trace_id":"');
const SPAN_ID = keys('","span_id":');
const SPAN_NAME = keys(',"span_name":');
const PARENT = keys(',"parent_span_id":');
const LINKS = keys(',"links":');
const START_TIME = keys(',"start_time_unix_nano":"');
const END_TIME = keys('","end_time_unix_nano":"');
const EVENT_ID = keys(',"event_id":');
const TIME = keys(',"time_unix_nano":"');
const SEVERITY_NUMBER = keys('","severity_number":');
const SEVERITY_TEXT = keys(',"severity_text":');
const STATUS = keys(',"status":');
const STATUS_MESSAGE = keys('{"message":');
const STATUS_CODE = keys(',"code":');
const BODY = keys(',"body":');
const EVENT_TYPE = keys(',"event_type":');
const ATTRIBUTES = keys(',"attributes":');
const LINK_TRACE_ID = keys('{"trace_id":"');
const LINK_SPAN_ID = keys('","span_id":"');
const LINK_ATTRIBUTES = keys('","attributes":');

/** What is kept for each kind of record: what the `record_type` column says of it, and the plans of its event types. */
interface Kind {
  readonly name: ConstantText;
  readonly plans: AttributePlans;
}

/** A number of 64 bits that may be absent. */
interface Halves {
  isThere: boolean;
  high: number;
  low: number;
}

/**
 * Writes lines as rows straight from their bytes, without making a record of them. It takes lines whose keys are laid out as
 * the engine lays out its own, without blanks, and whatever values a record can have. A line is first read to its end, then
 * written, so that one that is not taken has written nothing.
 */
class CanonicalRows {
  private readonly cursor = new ByteCursor();
  private readonly kinds: Readonly<Record<TelemetryRecord['recordType'], Kind>>;
  private plan: AttributePlan | undefined;
  private kind: TelemetryRecord['recordType'] = 'SpanStart';
  private traceIdStart = 0;
  private readonly lastTraceId = new ByteSource(Buffer.alloc(32));
  private readonly spanId = halves();
  private readonly parentSpanId = halves();
  private readonly startTime = halves();
  private readonly endTime = halves();
  private readonly spanName = slice();
  private readonly eventId = slice();
  private readonly severityText = slice();
  private readonly body = slice();
  private readonly eventType = textSlice();
  private readonly statusMessage = slice();
  private hasStatus = false;
  private statusCode = 0;
  private severityNumber = 0;
  private hasLinks = false;
  private readonly links = new LinkSlices();

  constructor(private readonly columns: RowGroupColumns) {
    const kind = (name: string): Kind => ({ name: new ConstantText(keys(name)), plans: new AttributePlans(columns) });
    this.kinds = { SpanStart: kind('SpanStart'), SpanEnd: kind('SpanEnd'), LogRecord: kind('LogRecord') };
  }

  /**
   * Writes the line that lies in `source` from `start` to `end`, without its line break; must be valid UTF-8.
   * @param isModern whether its attributes are known to be in the schema's own spelling
   * @returns `false` where it is laid out otherwise, may be in another spelling, or is no record
   */
  append(source: ByteSource, start: number, end: number, isModern: boolean): boolean {
    const { cursor } = this;
    cursor.point(source, start);
    if (!this.read(isModern) || cursor.at !== end) return false;
    this.write();
    return true;
  }

  private read(isModern: boolean): boolean {
    const { cursor } = this;
    this.kind = cursor.pass(SPAN_START) ? 'SpanStart' : cursor.pass(SPAN_END) ? 'SpanEnd' : 'LogRecord';
    if (this.kind === 'LogRecord' && !cursor.pass(LOG_RECORD)) return false;
    this.traceIdStart = cursor.at;
    if (!this.readTraceId() || !cursor.pass(SPAN_ID) || !this.readId(this.spanId)) return false;
    const isRead = this.kind === 'LogRecord' ? this.readLog() : this.readSpan();
    return (
      isRead && cursor.pass(EVENT_TYPE) && this.readPlan() && cursor.pass(ATTRIBUTES) && this.readAttributes(isModern)
    );
  }

  private readSpan(): boolean {
    const { cursor } = this;
    this.hasStatus = false;
    return (
      this.spanId.isThere &&
      cursor.pass(SPAN_NAME) &&
      this.readText(this.spanName) &&
      cursor.pass(PARENT) &&
      this.readId(this.parentSpanId) &&
      cursor.pass(LINKS) &&
      this.readLinks() &&
      cursor.pass(START_TIME) &&
      this.readTime(this.startTime) &&
      (this.kind === 'SpanStart' || (cursor.pass(END_TIME) && this.readTime(this.endTime))) &&
      this.readSeverity() &&
      (this.kind === 'SpanStart' || (cursor.pass(STATUS) && this.readStatus()))
    );
  }

  private readLog(): boolean {
    const { cursor } = this;
    return (
      cursor.pass(SPAN_NAME) &&
      this.readTextOrNull(this.spanName) &&
      cursor.pass(EVENT_ID) &&
      this.readTextOrNull(this.eventId) &&
      cursor.pass(TIME) &&
      this.readTime(this.startTime) &&
      this.readSeverity() &&
      cursor.pass(BODY) &&
      this.readText(this.body)
    );
  }

  private readSeverity(): boolean {
    const { cursor } = this;
    if (!cursor.pass(SEVERITY_NUMBER)) return false;
    this.severityNumber = cursor.number();
    if (!Number.isInteger(this.severityNumber)) return false;
    if (!cursor.pass(SEVERITY_TEXT) || !this.readText(this.severityText)) return false;
    // A text alone stands for a number too.
    const { severityText } = this;
    if (this.severityNumber === 0 && severityText.end > severityText.start) {
      this.severityNumber = severityNumberOf(this.textOf(severityText));
    }
    return true;
  }

  private readStatus(): boolean {
    const { cursor } = this;
    if (cursor.pass(NULL)) return true;
    if (!cursor.pass(STATUS_MESSAGE) || !this.readTextOrNull(this.statusMessage) || !cursor.pass(STATUS_CODE)) {
      return false;
    }
    this.statusCode = cursor.number();
    this.hasStatus = true;
    return Number.isInteger(this.statusCode) && cursor.passByte(END);
  }

  private readLinks(): boolean {
    this.hasLinks = !this.cursor.pass(NULL);
    return !this.hasLinks || this.links.read(this.cursor);
  }

  private readPlan(): boolean {
    const { cursor, eventType } = this;
    if (!cursor.text(eventType)) return false;
    this.plan = this.kinds[this.kind].plans.find(this.sourceOf(eventType).bytes, eventType.start, eventType.end);
    return true;
  }

  private readAttributes(isModern: boolean): boolean {
    return this.plan?.read(this.cursor, isModern) === true && this.cursor.passByte(END);
  }

  private readTraceId(): boolean {
    const { cursor, lastTraceId } = this;
    // Most lines have the trace id of the one before.
    if (cursor.pass(lastTraceId)) return true;
    if (!cursor.hexDigits(32)) return false;
    cursor.bytes.copy(lastTraceId.bytes, 0, cursor.at - 32, cursor.at);
    return true;
  }

  private readId(into: Halves): boolean {
    const { cursor } = this;
    into.isThere = !cursor.pass(NULL);
    if (!into.isThere) return true;
    if (!cursor.passByte(QUOTE) || !cursor.spanId() || !cursor.passByte(QUOTE)) return false;
    into.high = cursor.high;
    into.low = cursor.low;
    return true;
  }

  private readTime(into: Halves): boolean {
    const { cursor } = this;
    // Times are below 2^63.
    if (!cursor.uint64() || cursor.high >= 0x80000000) return false;
    into.high = cursor.high;
    into.low = cursor.low;
    return cursor.bytes[cursor.at] === QUOTE;
  }

  private readText(into: ReturnType<typeof slice>): boolean {
    into.isThere = true;
    return this.cursor.text(into);
  }

  private readTextOrNull(into: ReturnType<typeof slice>): boolean {
    into.isThere = !this.cursor.pass(NULL);
    return !into.isThere || this.cursor.text(into);
  }

  private write(): void {
    const { columns, cursor, kind, spanId } = this;
    const row = columns.rowCount++;
    columns.recordType.appendConstant(row, this.kinds[kind].name);
    columns.traceId.append(row, cursor.source, this.traceIdStart, this.traceIdStart + 32);
    if (spanId.isThere) columns.spanId.append(row, spanId.high, spanId.low);
    this.writeText(columns.spanName, row, this.spanName);
    columns.severityNumber.append(row, 0, within(this.severityNumber, -(2 ** 31), 2 ** 31 - 1) >>> 0);
    this.writeText(columns.severityText, row, this.severityText);
    if (this.plan !== undefined) columns.eventType.appendConstant(row, this.plan.eventType);
    if (kind === 'LogRecord') this.writeLog(row);
    else this.writeSpan(row);
    this.plan?.write(cursor, row);
  }

  private writeSpan(row: number): void {
    const { columns, parentSpanId, startTime, endTime } = this;
    if (parentSpanId.isThere) columns.parentSpanId.append(row, parentSpanId.high, parentSpanId.low);
    if (this.hasLinks) this.links.write(columns, row, this.cursor.source);
    columns.startTime.append(row, startTime.high, startTime.low);
    if (this.kind === 'SpanStart') return;
    columns.endTime.append(row, endTime.high, endTime.low);
    if (!this.hasStatus) return;
    columns.statusCode.append(row, 0, within(this.statusCode, 0, 2 ** 32 - 1));
    this.writeText(columns.statusMessage, row, this.statusMessage);
  }

  private writeLog(row: number): void {
    const { columns, startTime } = this;
    this.writeText(columns.eventId, row, this.eventId);
    columns.time.append(row, startTime.high, startTime.low);
    this.writeText(columns.body, row, this.body);
  }

  private writeText(column: RowGroupColumns['body'], row: number, text: ReturnType<typeof slice>): void {
    if (!text.isThere) return;
    column.append(row, this.sourceOf(text), text.start, text.end);
  }

  private sourceOf({ isUnescaped }: TextSlice): ByteSource {
    return isUnescaped ? this.cursor.unescaped.source : this.cursor.source;
  }

  private textOf(text: TextSlice): string {
    return this.sourceOf(text).bytes.toString('utf8', text.start, text.end);
  }
}

function halves(): Halves {
  return { isThere: true, high: Number.NaN, low: Number.NaN };
}

function slice() {
  return { ...textSlice(), isThere: true };
}

/** A number beyond the column's, which no program writes, becomes the nearest that it can hold. */
function within(value: number, least: number, greatest: number): number {
  return Math.max(least, Math.min(greatest, value));
}

/** Where a link's values are in the line. */
interface LinkSlice {
  traceIdStart: number;
  high: number;
  low: number;
  attributesStart: number;
  attributesEnd: number;
}

/** The links of a span's line. */
class LinkSlices {
  private readonly links: LinkSlice[] = [];
  private count = 0;

  /** Passes the list of links; `false` where it is not laid out as the engine's. */
  read(cursor: ByteCursor): boolean {
    this.count = 0;
    if (!cursor.passByte(LIST)) return false;
    if (cursor.bytes[cursor.at] === LIST_END) {
      cursor.at++;
      return true;
    }
    for (;;) {
      if (!this.readLink(cursor)) return false;
      const next = cursor.bytes[cursor.at++];
      if (next === LIST_END) return true;
      if (next !== COMMA) return false;
    }
  }

  /** Writes what was read last. */
  write({ linkTraceId, linkSpanId, linkPayload }: RowGroupColumns, row: number, source: ByteSource): void {
    for (const { writer } of [linkTraceId, linkSpanId, linkPayload]) {
      writer.beginRow(row);
      if (this.count === 0) writer.appendEmptyList();
    }
    for (let index = 0; index < this.count; index++) {
      const link = this.links[index];
      if (link === undefined) break;
      linkTraceId.appendItem(index, source, link.traceIdStart, link.traceIdStart + 32);
      linkSpanId.appendItem(index, link.high, link.low);
      linkPayload.appendItem(index, source, link.attributesStart, link.attributesEnd);
    }
    for (const column of [linkTraceId, linkSpanId, linkPayload]) column.endRow();
  }

  private readLink(cursor: ByteCursor): boolean {
    const link = this.next();
    if (!cursor.pass(LINK_TRACE_ID)) return false;
    link.traceIdStart = cursor.at;
    if (!cursor.hexDigits(32) || !cursor.pass(LINK_SPAN_ID) || !cursor.spanId() || !cursor.pass(LINK_ATTRIBUTES))
      return false;
    link.high = cursor.high;
    link.low = cursor.low;
    link.attributesStart = cursor.at;
    if (cursor.bytes[cursor.at] !== OBJECT || !cursor.value()) return false;
    link.attributesEnd = cursor.at;
    return cursor.passByte(END);
  }

  private next(): LinkSlice {
    const index = this.count++;
    this.links[index] ??= { traceIdStart: 0, high: Number.NaN, low: Number.NaN, attributesStart: 0, attributesEnd: 0 };
    return this.links[index];
  }
}

/** How lines are read. */
export interface LineRowsOptions {
  /** Whether all records are known to be in the schema's own spelling: those of record logs are. */
  readonly isModern: boolean;
  /** Gives a record in that spelling. */
  readonly toModern: (record: TelemetryRecord) => TelemetryRecord;
}

/** Writes lines of JSONL as rows. A line that is not laid out as the engine's is laid out so first. */
export class LineRows {
  private readonly rows: CanonicalRows;
  private readonly line = new ByteBuffer(4096);

  constructor(
    columns: RowGroupColumns,
    private readonly options: LineRowsOptions,
  ) {
    this.rows = new CanonicalRows(columns);
  }

  /**
   * Writes the line that lies in `source` from `start` to `end`, without its line feed; a blank one writes nothing.
   * @param isChecked whether the bytes are known to be valid UTF-8
   * @returns why the line is no record and was passed over; `undefined` when all is well
   */
  append(source: ByteSource, start: number, end: number, isChecked: boolean): string | undefined {
    const { bytes } = source;
    const isValid = isChecked || isUtf8(bytes.subarray(start, end));
    if (isValid && this.rows.append(source, start, end, this.options.isModern)) return undefined;
    return this.appendOther(bytes.toString('utf8', start, end));
  }

  /** Writes a record, by way of its line. */
  appendRecord(record: TelemetryRecord): void {
    if (!this.appendText(formatRecordLine(record))) this.appendLaidOut(record);
  }

  private appendOther(lineText: string): string | undefined {
    const text = lineText.endsWith('\r') ? lineText.slice(0, -1) : lineText;
    if (text.trim() === '') return undefined;
    if (isNestedTooDeep(text)) return `nested deeper than ${MAX_JSON_LEVELS} levels`;
    try {
      this.appendLaidOut(this.options.toModern(parseRecordLine(text)));
      return undefined;
    } catch (error) {
      if (error instanceof RecordParseError) return error.message;
      throw error;
    }
  }

  private appendLaidOut(record: TelemetryRecord): void {
    // Keys beside the engine's have no column.
    const { line: _, unknownFields: __, ...own } = record;
    if (!this.appendText(withoutBlanks(formatRecordLine(own))))
      throw new Error('a record has a line that cannot be read');
  }

  private appendText(line: string): boolean {
    this.line.clear();
    this.line.appendText(line);
    return this.rows.append(this.line.source, 0, this.line.length, true);
  }
}

/** A JSON text without the blanks that are not in a string. */
function withoutBlanks(json: string): string {
  let text = '';
  let from = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      isInString = !isInString;
    } else if (isInString) {
      if (code === 0x5c) at++;
    } else if (code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d) {
      text += json.slice(from, at);
      from = at + 1;
    }
  }
  return from === 0 ? json : text + json.slice(from);
}
