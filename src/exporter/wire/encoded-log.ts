import { type Attributes, type HrTime, type SpanContext, TraceFlags } from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { addAttribute, anyValueOf, fieldsOf, timeOf } from './decode-fields.js';
import { type EncodedItem, messageOf } from './encoded-item.js';
import type { ExportGroup } from './export-group.js';

interface DecodedLog {
  readonly hrTime: HrTime;
  readonly hrTimeObserved: HrTime;
  readonly spanContext: SpanContext | undefined;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: string | undefined;
  readonly eventName: string;
  readonly attributes: Attributes;
}

/** A log record in OTLP's protobuf, see `EncodedItem`; decoded when the first of its properties is asked for. */
export class EncodedLog implements ReadableLogRecord, EncodedItem {
  readonly droppedAttributesCount = 0;
  private known: DecodedLog | undefined;

  constructor(
    readonly block: Buffer,
    readonly start: number,
    readonly end: number,
    readonly group: ExportGroup,
  ) {}

  get hrTime(): HrTime {
    return this.decoded.hrTime;
  }

  get hrTimeObserved(): HrTime {
    return this.decoded.hrTimeObserved;
  }

  get spanContext(): SpanContext {
    return this.decoded.spanContext ?? ABSENT;
  }

  get severityNumber(): number {
    return this.decoded.severityNumber;
  }

  get severityText(): string {
    return this.decoded.severityText;
  }

  get body(): string {
    return this.decoded.body ?? ABSENT;
  }

  get eventName(): string {
    return this.decoded.eventName;
  }

  get attributes(): Attributes {
    return this.decoded.attributes;
  }

  get resource(): Resource {
    return this.group.resource;
  }

  get instrumentationScope(): InstrumentationScope {
    return this.group.scope;
  }

  private get decoded(): DecodedLog {
    this.known ??= decodeLog(messageOf(this));
    return this.known;
  }
}

/** Reads a LogRecord message that `encodeLog` wrote. */
function decodeLog(message: Buffer): DecodedLog {
  let hrTime: HrTime = [0, 0];
  let hrTimeObserved: HrTime = [0, 0];
  let severityNumber = 0;
  let severityText = '';
  let body: string | undefined;
  let eventName = '';
  let traceId = '';
  let spanId = '';
  const attributes: Attributes = {};
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 1) hrTime = timeOf(value);
    else if (number === 2) severityNumber = Number(BigInt.asIntN(64, value));
    else if (number === 3) severityText = content.toString('utf8');
    else if (number === 5) body = String(anyValueOf(content));
    else if (number === 6) addAttribute(attributes, content);
    else if (number === 9) traceId = content.toString('hex');
    else if (number === 10) spanId = content.toString('hex');
    else if (number === 11) hrTimeObserved = timeOf(value);
    else if (number === 12) eventName = content.toString('utf8');
  }
  const spanContext = spanId === '' ? undefined : { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return { hrTime, hrTimeObserved, spanContext, severityNumber, severityText, body, eventName, attributes };
}

/** An optional property of an interface cannot be declared as a getter that gives `undefined`; it may all the same. */
const ABSENT = undefined as never;
