import type { AttributePlan } from './attribute-plan.js';
import { AttributePlans } from './attribute-plans.js';
import { ByteCursor, textSlice } from './byte-cursor.js';
import { ByteSource } from './byte-source.js';
import { LinkSlices } from './link-slices.js';
import type { RowGroupColumns } from './row-group-columns.js';

const QUOTE = 0x22;

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
const END = 0x7d;

/** What the `record_type` column says. */
const NAMES = { SpanStart: keys('SpanStart'), SpanEnd: keys('SpanEnd'), LogRecord: keys('LogRecord') };

/** A number of 64 bits that may be absent. */
interface Halves {
  isThere: boolean;
  high: number;
  low: number;
}

/**
 * Writes lines as rows straight from their bytes, without making a record of them: about a tenth of the time. It takes
 * lines that are laid out to the letter as the engine lays out its own, with the attributes that the message's layout
 * knows; every other line is left to the general way, which makes the same cells of the ones that it takes too.
 * A line is first read to its end, then written, so that a line that is left has written nothing.
 */
export class CanonicalRows {
  private readonly cursor = new ByteCursor();
  private readonly plans: AttributePlans;
  private plan: AttributePlan | undefined;
  private kind: keyof typeof NAMES = 'SpanStart';
  private traceIdStart = 0;
  private readonly spanId = halves();
  private readonly parentSpanId = halves();
  private readonly startTime = halves();
  private readonly endTime = halves();
  private readonly spanName = slice();
  private readonly eventId = slice();
  private readonly severityText = slice();
  private readonly body = slice();
  private readonly eventType = slice();
  private readonly statusMessage = slice();
  private statusCode = -1;
  private severityNumber = 0;
  private hasLinks = false;
  private readonly links = new LinkSlices();

  constructor(private readonly columns: RowGroupColumns) {
    this.plans = new AttributePlans(columns);
  }

  /**
   * Writes the line that lies in `source` from `start` to `end`, without its line break; must be valid UTF-8.
   * @returns `false` where the line is for the general way
   */
  append(source: ByteSource, start: number, end: number): boolean {
    const { cursor } = this;
    cursor.point(source, start);
    if (!this.read() || cursor.at !== end) return false;
    this.write();
    return true;
  }

  private read(): boolean {
    const { cursor } = this;
    this.kind = cursor.pass(SPAN_START) ? 'SpanStart' : cursor.pass(SPAN_END) ? 'SpanEnd' : 'LogRecord';
    if (this.kind === 'LogRecord' && !cursor.pass(LOG_RECORD)) return false;
    this.traceIdStart = cursor.at;
    if (!cursor.hexDigits(32) || !cursor.pass(SPAN_ID) || !this.readId(this.spanId)) return false;
    const isRead = this.kind === 'LogRecord' ? this.readLog() : this.readSpan();
    return isRead && cursor.pass(EVENT_TYPE) && this.readPlan() && cursor.pass(ATTRIBUTES) && this.readAttributes();
  }

  private readSpan(): boolean {
    const { cursor } = this;
    this.statusCode = -1;
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
    const number = cursor.integer();
    if (number === undefined || number < 0 || number > 99) return false;
    this.severityNumber = number;
    if (!cursor.pass(SEVERITY_TEXT) || !this.readText(this.severityText)) return false;
    // The general way finds the number that a text alone stands for.
    return number !== 0 || this.severityText.start === this.severityText.end;
  }

  private readStatus(): boolean {
    const { cursor } = this;
    if (cursor.pass(NULL)) return true;
    if (!cursor.pass(STATUS_MESSAGE) || !this.readTextOrNull(this.statusMessage) || !cursor.pass(STATUS_CODE)) {
      return false;
    }
    const code = cursor.integer();
    if (code === undefined || code < 0 || code > 99) return false;
    this.statusCode = code;
    return cursor.passByte(END);
  }

  private readLinks(): boolean {
    this.hasLinks = !this.cursor.pass(NULL);
    return !this.hasLinks || this.links.read(this.cursor);
  }

  private readPlan(): boolean {
    const { cursor, eventType } = this;
    if (!cursor.text(eventType) || eventType.isUnescaped) return false;
    this.plan = this.plans.find(cursor.bytes, eventType.start, eventType.end);
    return true;
  }

  private readAttributes(): boolean {
    return this.plan?.read(this.cursor) === true && this.cursor.passByte(END);
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
    if (!cursor.uint64()) return false;
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
    const end = cursor.at;
    const row = columns.rowCount++;
    const name = NAMES[kind];
    columns.recordType.append(row, name, 0, name.bytes.length);
    columns.traceId.append(row, cursor.source, this.traceIdStart, this.traceIdStart + 32);
    if (spanId.isThere) columns.spanId.append(row, spanId.high, spanId.low);
    this.writeText(columns.spanName, row, this.spanName);
    columns.severityNumber.append(row, 0, this.severityNumber);
    this.writeText(columns.severityText, row, this.severityText);
    columns.eventType.append(row, cursor.source, this.eventType.start, this.eventType.end);
    if (kind === 'LogRecord') this.writeLog(row);
    else this.writeSpan(row);
    this.plan?.write(cursor, row);
    cursor.at = end;
  }

  private writeSpan(row: number): void {
    const { columns, parentSpanId, startTime, endTime } = this;
    if (parentSpanId.isThere) columns.parentSpanId.append(row, parentSpanId.high, parentSpanId.low);
    if (this.hasLinks) this.links.write(columns, row, this.cursor.source);
    columns.startTime.append(row, startTime.high, startTime.low);
    if (this.kind === 'SpanStart') return;
    columns.endTime.append(row, endTime.high, endTime.low);
    if (this.statusCode < 0) return;
    columns.statusCode.append(row, 0, this.statusCode);
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
    const { cursor } = this;
    column.append(row, text.isUnescaped ? cursor.unescaped.source : cursor.source, text.start, text.end);
  }
}

function halves(): Halves {
  return { isThere: true, high: Number.NaN, low: Number.NaN };
}

function slice() {
  return { ...textSlice(), isThere: true };
}
