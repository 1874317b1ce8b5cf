import type { HrTime } from '@opentelemetry/api';
import { NanosClock, view } from '../../record/arena.js';
import { type Attributes, ownText, type Resource } from '../../record/attributes.js';
import { Attribute, attributeAt, Cell, cell, isText } from '../../record/cells.js';
import { isOpening } from '../../record/json-line.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type {
  SpanId,
  SpanLink,
  SpanStatus,
  TelemetryRecord,
  TraceId,
  UnixNano,
} from '../../record/telemetry-record.js';
import { type KnownText, texts } from '../../record/texts.js';
import { type Interruption, interruptionOf } from '../../run/node-outcome.js';
import type { RecordPlan } from './record-plans.js';

/** A span id as two 32-bit integers with a sign, the more significant half first. */
export type IdHalves = readonly [high: number, low: number];

/** The halves of a span id; with a sign, since an integer without one is an object to V8 as often as not. */
export function halvesOf(id: SpanId): IdHalves {
  return [Number.parseInt(id.slice(0, 8), 16) | 0, Number.parseInt(id.slice(8), 16) | 0];
}

/** Returns whether two ids are equal. */
export function isSameId(id: IdHalves, other: IdHalves): boolean {
  return id[0] === other[0] && id[1] === other[1];
}

const NANOS_PER_SECOND_BIGINT = 1_000_000_000n;

/** OTel's time, whole seconds and nanoseconds, of nanoseconds; exact. Also for durations. */
export function hrTimeOf(nanos: UnixNano): HrTime {
  return [Number(nanos / NANOS_PER_SECOND_BIGINT), Number(nanos % NANOS_PER_SECOND_BIGINT)];
}

/** A time in seconds and nanoseconds. */
export type Time = readonly [seconds: number, nanos: number];

/** Returns whether one time is before another, each in seconds and nanoseconds. */
export function isBefore(seconds: number, nanos: number, thanSeconds: number, thanNanos: number): boolean {
  return seconds < thanSeconds || (seconds === thanSeconds && nanos < thanNanos);
}

/** Time interval of a span. */
export interface Interval {
  readonly spanHigh: number;
  readonly spanLow: number;
  readonly startSeconds: number;
  readonly startNanos: number;
  readonly endSeconds: number;
  readonly endNanos: number;
}

/** What the mapping asks of every record. Both halves of an id are 0 for none. A log record begins and ends at its time, a start ends when it begins. */
export interface MappedRecord extends Interval {
  readonly eventType: string;
  readonly isEnd: boolean;
  readonly parentHigh: number;
  readonly parentLow: number;
  /** The span that it links to first. */
  readonly linkHigh: number;
  readonly linkLow: number;
  /** The node that the record is about. */
  readonly uniqueId: string | undefined;
  /** An attribute that is a text. @throws SyntaxError when the record turns out to be damaged, as do the others below */
  text(name: string): string | undefined;
  /** Returns the interruption of a node, or of the command, that it reports. */
  interruption(): Interruption | undefined;
}

const NO_ID: IdHalves = [0, 0];
const NO_STATUS: SpanStatus = { code: 0, message: null };
const MAX_INT32 = 2 ** 31 - 1;

/** A record of any look, as plain code has it. */
export class PlainRecord implements MappedRecord {
  readonly spanHigh: number;
  readonly spanLow: number;
  readonly startSeconds: number;
  readonly startNanos: number;
  readonly endSeconds: number;
  readonly endNanos: number;

  constructor(readonly record: TelemetryRecord) {
    [this.spanHigh, this.spanLow] = record.spanId === null ? NO_ID : halvesOf(record.spanId);
    [this.startSeconds, this.startNanos] = hrTimeOf(
      record.recordType === 'LogRecord' ? record.timeUnixNano : record.startTimeUnixNano,
    );
    [this.endSeconds, this.endNanos] =
      record.recordType === 'SpanEnd' ? hrTimeOf(record.endTimeUnixNano) : [this.startSeconds, this.startNanos];
  }

  get eventType(): string {
    return this.record.eventType;
  }

  get traceId(): TraceId {
    return this.record.traceId;
  }

  get isEnd(): boolean {
    return this.record.recordType === 'SpanEnd';
  }

  get isLog(): boolean {
    return this.record.recordType === 'LogRecord';
  }

  get parentHigh(): number {
    return this.parent[0];
  }

  get parentLow(): number {
    return this.parent[1];
  }

  get linkHigh(): number {
    return this.link[0];
  }

  get linkLow(): number {
    return this.link[1];
  }

  get links(): readonly SpanLink[] {
    return this.record.recordType === 'LogRecord' ? [] : (this.record.links ?? []);
  }

  get severityNumber(): number {
    return clamp(this.record.severityNumber);
  }

  get severityText(): string {
    return this.record.severityText;
  }

  get body(): string {
    return this.record.recordType === 'LogRecord' ? this.record.body : '';
  }

  /** A span's name; empty for a log record. */
  get name(): string {
    return this.record.recordType === 'LogRecord' ? '' : this.record.spanName;
  }

  /** Of the end of a span; code 0 where it has none. */
  get status(): SpanStatus {
    return (this.record.recordType === 'SpanEnd' ? this.record.status : null) ?? NO_STATUS;
  }

  get endTime(): HrTime {
    return [this.endSeconds, this.endNanos];
  }

  get attributes(): Attributes {
    return this.record.attributes;
  }

  get uniqueId(): string | undefined {
    return this.text('unique_id');
  }

  text(name: string): string | undefined {
    const text = this.record.attributes.text(name);
    return text === undefined ? undefined : ownText(text);
  }

  interruption(): Interruption | undefined {
    return interruptionOf(this.record);
  }

  private get parent(): IdHalves {
    const { record } = this;
    return record.recordType === 'LogRecord' || record.parentSpanId === null ? NO_ID : halvesOf(record.parentSpanId);
  }

  private get link(): IdHalves {
    const [first] = this.links;
    return first === undefined ? NO_ID : halvesOf(first.spanId);
  }
}

/** The line of a span's start, while the span is open. */
export class StartLine {
  constructor(
    private readonly line: Buffer,
    readonly resource: Resource,
  ) {}

  /** @throws SyntaxError when it turns out to be damaged */
  read(): PlainRecord {
    const record = tryParseRecordLine(this.line.toString('utf8'));
    if (record === undefined) throw new SyntaxError('a start is no record');
    return new PlainRecord(record);
  }
}

/** Protobuf has them as 32-bit integers. */
function clamp(value: number): number {
  return Math.min(Math.max(value, -MAX_INT32), MAX_INT32);
}

/** Returns whether an attribute of the record that is looked at is an object or a list. */
export function isNested(plan: RecordPlan, index: number): boolean {
  if (plan.attributes[index]?.mayBeNested !== true) return false;
  const at = attributeAt(index);
  const start = cell(at + Attribute.valueStart);
  if (!isText(index) || start === cell(at + Attribute.valueEnd)) return false;
  return isOpening(view.getUint8(start));
}

/** The text of an attribute of the record that is looked at; `undefined` where it is none. @param index -1 for an attribute that is not there */
export function attributeText(plan: RecordPlan, index: number): KnownText | undefined {
  const hasText = index >= 0 && isText(index);
  return hasText && !isNested(plan, index) ? texts.ofAttribute(attributeAt(index)) : undefined;
}

/** The JSON of an attribute of the record that is looked at, an object or a list; `undefined` where it is none. */
export function attributeJson(plan: RecordPlan, index: number): KnownText | undefined {
  return index >= 0 && isNested(plan, index) ? texts.ofAttribute(attributeAt(index)) : undefined;
}

/**
 * A record that has cells: the end of a span, or a log record that reports no error. One object for all: what it says is about the
 * record that is looked at, and whose plan it was given.
 */
export class CellRecord implements MappedRecord {
  startSeconds = 0;
  startNanos = 0;
  endSeconds = 0;
  endNanos = 0;

  constructor(
    public plan: RecordPlan,
    public isLog: boolean,
  ) {}

  /** Reads the times of the record that is looked at. */
  use(plan: RecordPlan, isLog: boolean): void {
    this.plan = plan;
    this.isLog = isLog;
    CLOCK.read(cell(Cell.startHigh), cell(Cell.startLow));
    this.startSeconds = CLOCK.seconds;
    this.startNanos = CLOCK.nanos;
    CLOCK.read(cell(Cell.endHigh), cell(Cell.endLow));
    this.endSeconds = CLOCK.seconds;
    this.endNanos = CLOCK.nanos;
  }

  get eventType(): string {
    return this.plan.eventType;
  }

  get isEnd(): boolean {
    return !this.isLog;
  }

  get spanHigh(): number {
    return cell(Cell.idHigh);
  }

  get spanLow(): number {
    return cell(Cell.idLow);
  }

  get parentHigh(): number {
    return cell(Cell.parentHigh);
  }

  get parentLow(): number {
    return cell(Cell.parentLow);
  }

  get linkHigh(): number {
    return cell(Cell.linkHigh);
  }

  get linkLow(): number {
    return cell(Cell.linkLow);
  }

  get uniqueId(): string | undefined {
    return attributeText(this.plan, this.plan.uniqueId)?.text;
  }

  text(name: string): string | undefined {
    return attributeText(this.plan, this.plan.indexOf(name))?.text;
  }

  /** What says so has no cells here. */
  interruption(): undefined {
    return undefined;
  }
}

const CLOCK = new NanosClock();
