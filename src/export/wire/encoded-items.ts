import {
  type Attributes,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanKind,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { addAttribute, anyValueOf, type DecodedSpan, decodeSpan, fieldsOf, timeOf } from './decode-items.js';
import { encodeAttributes, WireWriter } from './wire-writer.js';

/**
 * A span or log record in OTLP's protobuf, as it stands in a ScopeSpans or ScopeLogs: tag, length, message. Many share a
 * block of bytes, so that neighbours are copied into a request together.
 */
export interface EncodedItem {
  readonly block: Buffer;
  readonly start: number;
  readonly end: number;
  readonly group: ExportGroup;
}

/** The message in an item, without its tag and length. */
export function messageOf({ block, start, end }: EncodedItem): Buffer {
  let at = start + 1;
  while ((block[at] ?? 0) >= 0x80) at++;
  return block.subarray(at + 1, end);
}

const RESOURCE = tagOf(1, LENGTH);
const RESOURCE_ATTRIBUTES = tagOf(1, LENGTH);
const RESOURCE_DROPPED = tagOf(2, VARINT);
const SCOPE = tagOf(1, LENGTH);
const SCOPE_NAME = tagOf(1, LENGTH);
const SCOPE_VERSION = tagOf(2, LENGTH);

/** The resource and scope that items of a request have in common, encoded once. Equal ones of several runs share a key. */
export class ExportGroup {
  /** Field 1 of ResourceSpans or ResourceLogs. */
  readonly resourceBytes: Uint8Array;
  /** Field 1 of ScopeSpans or ScopeLogs. */
  readonly scopeBytes: Uint8Array;
  readonly resourceKey: string;
  readonly scopeKey: string;

  constructor(
    readonly resource: Resource,
    readonly scope: InstrumentationScope,
  ) {
    const resourceBytes = encodeResource(resource);
    const scopeBytes = encodeScope(scope);
    this.resourceBytes = resourceBytes;
    this.scopeBytes = scopeBytes;
    this.resourceKey = resourceBytes.toString('latin1');
    this.scopeKey = scopeBytes.toString('latin1');
  }
}

function encodeResource(resource: Resource): Buffer {
  const out = new WireWriter(256);
  out.tag(RESOURCE);
  const start = out.open();
  encodeAttributes(out, RESOURCE_ATTRIBUTES, resource.attributes);
  out.tag(RESOURCE_DROPPED);
  out.varint(0);
  out.close(start);
  return out.bytes.subarray(0, out.length);
}

function encodeScope(scope: InstrumentationScope): Buffer {
  const out = new WireWriter(64);
  out.tag(SCOPE);
  const start = out.open();
  out.tag(SCOPE_NAME);
  out.text(scope.name);
  if (scope.version !== undefined && scope.version !== '') {
    out.tag(SCOPE_VERSION);
    out.text(scope.version);
  }
  out.close(start);
  return out.bytes.subarray(0, out.length);
}

/**
 * A span in OTLP's protobuf, see `EncodedItem`. For exporters that want objects it is one, too: it is decoded when the
 * first of its properties is asked for.
 */
export class EncodedSpan implements ReadableSpan, EncodedItem {
  private known: DecodedSpan | undefined;

  constructor(
    readonly block: Buffer,
    readonly start: number,
    readonly end: number,
    readonly group: ExportGroup,
  ) {}

  /** Read from the first bytes: a message begins with its trace id and span id. */
  spanContext(): SpanContext {
    const message = messageOf(this);
    return {
      traceId: message.toString('hex', 2, 18),
      spanId: message.toString('hex', 20, 28),
      traceFlags: TraceFlags.SAMPLED,
    };
  }

  // Not fields: as many spans wait to be sent as there is room for, and these would be in each.
  get ended(): boolean {
    return true;
  }

  get droppedAttributesCount(): number {
    return 0;
  }

  get droppedLinksCount(): number {
    return 0;
  }

  get parentSpanContext(): SpanContext {
    const { parentSpanId } = this.decoded;
    return parentSpanId === undefined ? ABSENT : { ...this.spanContext(), spanId: parentSpanId };
  }

  get name(): string {
    return this.decoded.name;
  }

  get kind(): SpanKind {
    return this.decoded.kind;
  }

  get startTime(): HrTime {
    return this.decoded.startTime;
  }

  get endTime(): HrTime {
    return this.decoded.endTime;
  }

  get duration(): HrTime {
    const [fromSeconds, fromNanos] = this.decoded.startTime;
    const [toSeconds, toNanos] = this.decoded.endTime;
    const seconds = toSeconds - fromSeconds;
    const nanos = toNanos - fromNanos;
    if (nanos < 0) return seconds > 0 ? [seconds - 1, nanos + 1_000_000_000] : [0, 0];
    return seconds < 0 ? [0, 0] : [seconds, nanos];
  }

  get status(): ReadableSpan['status'] {
    return this.decoded.status;
  }

  get attributes(): Attributes {
    return this.decoded.attributes;
  }

  get links(): Link[] {
    return this.decoded.links;
  }

  get events(): TimedEvent[] {
    return this.decoded.events;
  }

  get droppedEventsCount(): number {
    return this.decoded.droppedEventsCount;
  }

  get resource(): Resource {
    return this.group.resource;
  }

  get instrumentationScope(): InstrumentationScope {
    return this.group.scope;
  }

  private get decoded(): DecodedSpan {
    this.known ??= decodeSpan(messageOf(this));
    return this.known;
  }
}

/** An optional property of an interface cannot be declared as a getter that gives `undefined`; it may all the same. */
const ABSENT = undefined as never;

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

/** Reads a LogRecord message. */
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

/** Items share blocks of about this many bytes; one that is larger has a block of its own. */
const BLOCK_BYTES = 256 * 1024;
/** A block with less room than this is full: most items need no more, and those that do make it grow. */
const ROOM_BYTES = 4 * 1024;

/** Encodes items one behind the other into blocks of bytes. What was handed out is not written to again. */
export class ItemEncoder {
  private block: WireWriter;
  /** Where the item that was written last begins. */
  private start = 0;

  constructor(private readonly blockBytes = BLOCK_BYTES) {
    this.block = new WireWriter(0);
  }

  /** A span that is written now, its tag and length included. @throws what `write` does */
  span(group: ExportGroup, write: (out: WireWriter) => void): EncodedSpan {
    const out = this.written(write);
    return new EncodedSpan(out.bytes, this.start, out.length, group);
  }

  /** As `span`, of a line that may turn out to be damaged: `undefined` then. */
  spanOf(group: ExportGroup, write: (out: WireWriter) => void): EncodedSpan | undefined {
    try {
      return this.span(group, write);
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** A log record that is written now. @throws what `write` does */
  log(group: ExportGroup, write: (out: WireWriter) => void): EncodedLog {
    const out = this.written(write);
    return new EncodedLog(out.bytes, this.start, out.length, group);
  }

  private written(write: (out: WireWriter) => void): WireWriter {
    if (this.block.length + ROOM_BYTES > this.block.bytes.length) this.block = new WireWriter(this.blockBytes);
    const { block } = this;
    this.start = block.length;
    try {
      write(block);
    } catch (error) {
      block.length = this.start;
      throw error;
    }
    return block;
  }
}
