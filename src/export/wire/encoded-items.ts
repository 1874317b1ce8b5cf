import {
  type Attributes,
  type AttributeValue,
  type HrTime,
  type Link,
  type SpanContext,
  type SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-base';
import { FIXED32, FIXED64, LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { varintSize } from '../../record/arena.js';
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

  /** In lower-case hex. */
  get traceId(): string {
    return this.spanContext().traceId;
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
  readonly traceId: string;
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

  /** In lower-case hex; empty for none. */
  get traceId(): string {
    return this.decoded.traceId;
  }

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
  return { traceId, hrTime, hrTimeObserved, spanContext, severityNumber, severityText, body, eventName, attributes };
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

const RESOURCE_GROUP = tagOf(1, LENGTH);
const SCOPE_GROUP = tagOf(2, LENGTH);
/** Tags and lengths round a resource's and a scope's messages, at most. */
const FRAME_BYTES = 16;

interface ScopeItems {
  readonly head: Uint8Array;
  /** Ranges of bytes, items that stand side by side in one. */
  readonly ranges: { readonly block: Buffer; readonly start: number; end: number }[];
  byteCount: number;
}

interface ResourceItems {
  readonly head: Uint8Array;
  readonly scopes: Map<string, ScopeItems>;
}

/**
 * Puts encoded items together to one OTLP request, grouped by resource and scope in the order in which they first come.
 * Items may be of several runs.
 */
export class RequestAssembler {
  private readonly resources = new Map<string, ResourceItems>();
  private lastGroup: EncodedItem['group'] | undefined;
  private lastScope: ScopeItems | undefined;
  /** The request's length in bytes so far, or a few more. */
  byteCount = 0;
  itemCount = 0;

  add(item: EncodedItem): void {
    const { lastScope } = this;
    const scope = lastScope !== undefined && this.lastGroup === item.group ? lastScope : this.scopeOf(item);
    const range = scope.ranges.at(-1);
    if (range?.block === item.block && range.end === item.start) range.end = item.end;
    else scope.ranges.push({ block: item.block, start: item.start, end: item.end });
    scope.byteCount += item.end - item.start;
    this.byteCount += item.end - item.start;
    this.itemCount++;
    this.lastGroup = item.group;
    this.lastScope = scope;
  }

  /** The request's body. */
  finish(): Uint8Array {
    const out = new WireWriter(this.byteCount);
    for (const { head, scopes } of this.resources.values()) {
      let byteCount = head.length;
      for (const scope of scopes.values()) byteCount += 1 + framed(sizeOf(scope));
      out.tag(RESOURCE_GROUP);
      out.varint(byteCount);
      out.raw(head);
      for (const scope of scopes.values()) writeScope(out, scope);
    }
    return out.bytes.subarray(0, out.length);
  }

  private scopeOf({ group }: EncodedItem): ScopeItems {
    let resource = this.resources.get(group.resourceKey);
    if (resource === undefined) {
      resource = { head: group.resourceBytes, scopes: new Map() };
      this.resources.set(group.resourceKey, resource);
      this.byteCount += group.resourceBytes.length + FRAME_BYTES;
    }
    let scope = resource.scopes.get(group.scopeKey);
    if (scope === undefined) {
      scope = { head: group.scopeBytes, ranges: [], byteCount: 0 };
      resource.scopes.set(group.scopeKey, scope);
      this.byteCount += group.scopeBytes.length + FRAME_BYTES;
    }
    return scope;
  }
}

function writeScope(out: WireWriter, scope: ScopeItems): void {
  out.tag(SCOPE_GROUP);
  out.varint(sizeOf(scope));
  out.raw(scope.head);
  for (const { block, start, end } of scope.ranges) {
    out.reserve(end - start);
    out.length += block.copy(out.bytes, out.length, start, end);
  }
}

function sizeOf(scope: ScopeItems): number {
  return scope.head.length + scope.byteCount;
}

/** A message's bytes with its length before them. */
function framed(byteCount: number): number {
  return byteCount + varintSize(byteCount);
}

/** One field of a message: its number, and its value as its wire type has it. */
export interface WireField {
  readonly number: number;
  /** Of VARINT and FIXED32 fields, and 64 bits otherwise. */
  readonly value: bigint;
  /** Of LENGTH fields. */
  readonly content: Buffer;
}

/** The fields of a message that `WireWriter` wrote; it reads no others, so it checks nothing. */
export function* fieldsOf(message: Buffer): Generator<WireField> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const start = at;
    switch (tag & 7) {
      case VARINT:
        yield { number, value: varint(), content: EMPTY };
        break;
      case FIXED64:
        at += 8;
        yield { number, value: message.readBigUInt64LE(start), content: message.subarray(start, at) };
        break;
      case FIXED32:
        at += 4;
        yield { number, value: BigInt(message.readUInt32LE(start)), content: EMPTY };
        break;
      case LENGTH: {
        const length = Number(varint());
        at += length;
        yield { number, value: 0n, content: message.subarray(at - length, at) };
        break;
      }
      default:
        throw new Error(`no field of an exported item has the wire type ${tag & 7}`);
    }
  }
}

const EMPTY = Buffer.alloc(0);

/** Adds a KeyValue message to attributes. */
export function addAttribute(into: Attributes, keyValue: Buffer): void {
  let key = '';
  let value: AttributeValue | undefined;
  for (const field of fieldsOf(keyValue)) {
    if (field.number === 1) key = field.content.toString('utf8');
    else value = anyValueOf(field.content);
  }
  // Not by assignment: `__proto__` is a key like any other here.
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The value of an AnyValue message; numbers beyond 2^53 lose digits, as they had when they were written. */
export function anyValueOf(anyValue: Buffer): AttributeValue | undefined {
  for (const field of fieldsOf(anyValue)) {
    if (field.number === 1) return field.content.toString('utf8');
    if (field.number === 2) return field.value !== 0n;
    if (field.number === 3) return Number(BigInt.asIntN(64, field.value));
    if (field.number === 4) return field.content.readDoubleLE(0);
    return [...fieldsOf(field.content)].map(({ content }) => anyValueOf(content)) as string[];
  }
  return undefined;
}

/** Seconds and nanoseconds of a fixed64. */
export function timeOf(nanos: bigint): HrTime {
  return [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)];
}

/** What a span's bytes say; the rest of a ReadableSpan follows from it, or is the same for all. */
export type DecodedSpan = Pick<
  ReadableSpan,
  'name' | 'kind' | 'startTime' | 'endTime' | 'status' | 'attributes' | 'links' | 'events' | 'droppedEventsCount'
> & { readonly parentSpanId: string | undefined };

/** Reads a Span message, for exporters that want objects. */
export function decodeSpan(message: Buffer): DecodedSpan {
  let parentSpanId: string | undefined;
  let name = '';
  let kind = 0;
  let startTime: HrTime = [0, 0];
  let endTime: HrTime = [0, 0];
  let status: ReadableSpan['status'] = { code: SpanStatusCode.UNSET };
  let droppedEventsCount = 0;
  const attributes: Attributes = {};
  const events: TimedEvent[] = [];
  const links: Link[] = [];
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 4) parentSpanId = content.toString('hex');
    else if (number === 5) name = content.toString('utf8');
    else if (number === 6) kind = Number(value) - 1;
    else if (number === 7) startTime = timeOf(value);
    else if (number === 8) endTime = timeOf(value);
    else if (number === 9) addAttribute(attributes, content);
    else if (number === 11) events.push(eventOf(content));
    else if (number === 12) droppedEventsCount = Number(value);
    else if (number === 13) links.push(linkOf(content));
    else if (number === 15) status = statusOf(content);
  }
  return { parentSpanId, name, kind, startTime, endTime, status, attributes, links, events, droppedEventsCount };
}

function eventOf(message: Buffer): TimedEvent {
  let time: HrTime = [0, 0];
  let name = '';
  const attributes: Attributes = {};
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 1) time = timeOf(value);
    else if (number === 2) name = content.toString('utf8');
    else if (number === 3) addAttribute(attributes, content);
  }
  return { time, name, attributes, droppedAttributesCount: 0 };
}

function linkOf(message: Buffer): Link {
  let traceId = '';
  let spanId = '';
  const attributes: Attributes = {};
  for (const { number, content } of fieldsOf(message)) {
    if (number === 1) traceId = content.toString('hex');
    else if (number === 2) spanId = content.toString('hex');
    else if (number === 4) addAttribute(attributes, content);
  }
  return { context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED }, attributes };
}

function statusOf(message: Buffer): ReadableSpan['status'] {
  let code = SpanStatusCode.UNSET;
  let text: string | undefined;
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 2) text = content.toString('utf8');
    else if (number === 3) code = Number(value);
  }
  return text === undefined ? { code } : { code, message: text };
}
