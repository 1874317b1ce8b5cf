import type { Signal } from '../record/record-batch.js';
import { OtlpDecodeError } from './otlp-codec.js';
import { FIXED32, FIXED64, LENGTH, VARINT } from './wire-type.js';

/**
 * Maximum content of one request, independent of its size in bytes: an empty message is two bytes on the wire and some hundred in memory.
 * 64 MiB of the engine's own requests hold at most a third of each.
 */
export const BODY_LIMITS = {
  /** Resources with their spans or log records (`resourceSpans`, `resourceLogs`). */
  groups: 50_000,
  /** Scopes with theirs (`scopeSpans`, `scopeLogs`), in all groups. */
  scopes: 50_000,
  /** Spans, or log records; how many records may become of them, `MAX_RECORDS` says. */
  items: 300_000,
  /** Attributes of everything, with the values of lists; those of a resource once for each of its scopes. */
  attributes: 4_000_000,
  /** Events of spans. */
  events: 500_000,
  /** Links of spans. */
  links: 500_000,
  /** Messages of any kind (in JSON objects and lists), one in the other. */
  messages: 8_000_000,
  /** Fields (in JSON values) of one resource, scope, span or log record, with all that is in it. */
  fields: 200_000,
} as const;

/**
 * The longest span or log record, in bytes; what is longer is rejected. Making a record of one keeps others waiting for as long as it takes, which
 * is some 20 ms a megabyte. The engine's longest are 6 MB.
 */
export const MAX_ITEM_BYTES = 16 * 1024 * 1024;

const NAMES: Readonly<Record<keyof typeof BODY_LIMITS, string>> = {
  groups: 'resources',
  scopes: 'scopes',
  items: 'spans or log records',
  attributes: 'attributes',
  events: 'events of spans',
  links: 'links of spans',
  messages: 'messages in all',
  fields: 'fields in one resource, scope, span or log record',
};

/** The error for a request with too much content. */
export function tooMany(kind: keyof typeof BODY_LIMITS): OtlpDecodeError {
  return new OtlpDecodeError(`A request may hold ${BODY_LIMITS[kind]} ${NAMES[kind]}; send smaller batches.`);
}

/** A shorter body is counted in one go. The shortest message takes two bytes, so it holds few of each, but each scope has its resource's attributes made again. */
export const COUNTED_BYTES = 2 * Math.min(...Object.values(BODY_LIMITS));

/** The spans and log records of a shorter body cannot hold more than these limits allow: they are counted without looking into them. */
const INNER_LIMITS = [
  BODY_LIMITS.attributes,
  BODY_LIMITS.events,
  BODY_LIMITS.links,
  BODY_LIMITS.messages,
  BODY_LIMITS.fields,
];
const LOOKED_INTO_BYTES = 2 * Math.min(...INNER_LIMITS);

/** Messages that can contain others. */
const REQUEST = 1;
const GROUP = 2;
const RESOURCE = 3;
const SCOPE_GROUP = 4;
const SCOPE = 5;
const SPAN = 6;
const LOG = 7;
const EVENT = 8;
const LINK = 9;
const ATTRIBUTE = 10;
const VALUE = 11;
const LIST = 12;
const LIST_VALUE = 13;
const STATUS = 14;
const MAP = 15;
/** A group of protobuf's first version: unknown here, and passed over with all that is in it. */
const UNKNOWN_GROUP = 16;

/** Field numbers of messages that are looked at are below this. */
const FIELD_NUMBERS = 16;
/** Deeper ones are refused by every decoder. */
const MAX_DEPTH = 128;
const MAX_VARINT_BYTES = 10;
const START_GROUP = 3;
const END_GROUP = 4;

/** By message and field number: the message in that field. */
const INNER: Readonly<Record<Signal, Uint8Array>> = { traces: innerOf(SPAN), logs: innerOf(LOG) };

function innerOf(item: number): Uint8Array {
  const inner = new Uint8Array((UNKNOWN_GROUP + 1) * FIELD_NUMBERS);
  const has = (outer: number, field: number, message: number) => {
    inner[outer * FIELD_NUMBERS + field] = message;
  };
  has(REQUEST, 1, GROUP);
  has(GROUP, 1, RESOURCE);
  has(GROUP, 2, SCOPE_GROUP);
  has(RESOURCE, 1, ATTRIBUTE);
  has(RESOURCE, 3, STATUS);
  has(SCOPE_GROUP, 1, SCOPE);
  has(SCOPE_GROUP, 2, item);
  has(SCOPE, 3, ATTRIBUTE);
  has(SPAN, 9, ATTRIBUTE);
  has(SPAN, 11, EVENT);
  has(SPAN, 13, LINK);
  has(SPAN, 15, STATUS);
  has(LOG, 5, VALUE);
  has(LOG, 6, ATTRIBUTE);
  has(EVENT, 3, ATTRIBUTE);
  has(LINK, 4, ATTRIBUTE);
  has(ATTRIBUTE, 2, VALUE);
  for (const value of [VALUE, LIST_VALUE]) {
    has(value, 5, LIST);
    has(value, 6, MAP);
  }
  has(LIST, 1, LIST_VALUE);
  has(MAP, 1, ATTRIBUTE);
  return inner;
}

/** Counts what a short body holds in one go. @throws OtlpDecodeError beyond one of {@link BODY_LIMITS} */
export function checkShortBody(signal: Signal, body: Uint8Array): void {
  if (body.length <= COUNTED_BYTES) new WireCounter(signal, body).count(COUNTED_BYTES);
}

/**
 * Counts the content of a request in protobuf from its framing alone, before it is decoded: some 30 ns a field. Into
 * the spans and log records of a short one it does not look.
 * Invalid protobuf ends the counting; the decoder reports the error. It reads framing as protobufjs does, odd framing included.
 */
export class WireCounter {
  private position = 0;
  private depth = 0;
  private readonly kinds = new Uint8Array(MAX_DEPTH + 1);
  private readonly ends = new Float64Array(MAX_DEPTH + 1);
  private readonly inner: Uint8Array;
  /** The message that is counted, and not looked into; none if 0. */
  private readonly counted: number;
  private groups = 0;
  private scopes = 0;
  /** Spans or log records so far; more than any request may hold where the rest could not be counted. */
  items = 0;
  private attributes = 0;
  private events = 0;
  private links = 0;
  private messages = 0;
  /** Of the current resource, scope or item. */
  private fields = 0;
  private resourceAttributes = 0;
  private scopesOfResource = 0;

  constructor(
    signal: Signal,
    private readonly bytes: Uint8Array,
  ) {
    this.inner = INNER[signal];
    this.counted = bytes.length > LOOKED_INTO_BYTES ? 0 : signal === 'traces' ? SPAN : LOG;
    this.kinds[0] = REQUEST;
    this.ends[0] = bytes.length;
  }

  /**
   * Counts so many fields more.
   * @returns whether some are left.
   * @throws OtlpDecodeError beyond one of {@link BODY_LIMITS}
   */
  count(fieldCount: number): boolean {
    const { bytes, kinds, ends, inner } = this;
    const { length } = bytes;
    // Read again after each message that begins or ends; what is in between is the hot path.
    let { position } = this;
    let kind = kinds[this.depth] as number;
    let end = ends[this.depth] as number;
    for (let left = fieldCount; left > 0; left--) {
      while (position >= end || position >= length) {
        if (this.depth === 0) return false;
        this.leave();
        kind = kinds[this.depth] as number;
        end = ends[this.depth] as number;
      }
      let tag = bytes[position++] as number;
      if (tag >= 0x80) {
        this.position = position - 1;
        tag = this.varint();
        position = this.position;
      }
      if (++this.fields > BODY_LIMITS.fields) throw tooMany('fields');
      switch (tag & 7) {
        case VARINT:
          while ((bytes[position++] as number) >= 0x80);
          break;
        case FIXED64:
          position += 8;
          break;
        case FIXED32:
          position += 4;
          break;
        case LENGTH: {
          let contentLength = bytes[position++] ?? 0;
          if (contentLength >= 0x80) {
            this.position = position - 1;
            contentLength = this.varint();
            position = this.position;
          }
          const field = tag >>> 3;
          const message = field < FIELD_NUMBERS ? (inner[kind * FIELD_NUMBERS + field] as number) : 0;
          if (message === 0 || message === this.counted || this.depth === MAX_DEPTH) {
            if (message !== 0 && message === this.counted) this.addItem();
            position += contentLength;
            break;
          }
          kind = message;
          end = position + contentLength;
          this.enter(message, end);
          break;
        }
        case START_GROUP:
          if (this.depth === MAX_DEPTH) return this.giveUp();
          this.depth += 1;
          kinds[this.depth] = kind = UNKNOWN_GROUP;
          ends[this.depth] = end = length;
          break;
        case END_GROUP:
          if (kind !== UNKNOWN_GROUP) return this.giveUp();
          this.depth -= 1;
          kind = kinds[this.depth] as number;
          end = ends[this.depth] as number;
          break;
        default:
          return this.giveUp();
      }
    }
    this.position = position;
    return true;
  }

  private enter(message: number, end: number): void {
    this.depth += 1;
    this.kinds[this.depth] = message;
    this.ends[this.depth] = end;
    if (++this.messages > BODY_LIMITS.messages) throw tooMany('messages');
    switch (message) {
      case GROUP:
        this.resourceAttributes = 0;
        this.scopesOfResource = 0;
        this.fields = 0;
        if (++this.groups > BODY_LIMITS.groups) throw tooMany('groups');
        break;
      case SCOPE_GROUP:
        this.scopesOfResource += 1;
        this.fields = 0;
        if (++this.scopes > BODY_LIMITS.scopes) throw tooMany('scopes');
        break;
      case SPAN:
      case LOG:
        this.addItem();
        break;
      case ATTRIBUTE:
      case LIST_VALUE:
        if (this.kinds[2] === RESOURCE) this.resourceAttributes += 1;
        if (++this.attributes > BODY_LIMITS.attributes) throw tooMany('attributes');
        break;
      case EVENT:
        if (++this.events > BODY_LIMITS.events) throw tooMany('events');
        break;
      case LINK:
        if (++this.links > BODY_LIMITS.links) throw tooMany('links');
        break;
    }
  }

  private addItem(): void {
    this.fields = 0;
    if (++this.items > BODY_LIMITS.items) throw tooMany('items');
  }

  private leave(): void {
    if (this.kinds[this.depth] === GROUP) {
      // Each scope has the resource's attributes made again.
      this.attributes += this.resourceAttributes * this.scopesOfResource;
      if (this.attributes > BODY_LIMITS.attributes) throw tooMany('attributes');
    }
    this.depth -= 1;
  }

  /** The low 32 bits of one. */
  private varint(): number {
    const { bytes } = this;
    let byte = bytes[this.position++] ?? 0;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let count = 1; count < MAX_VARINT_BYTES; count++) {
      byte = bytes[this.position++] ?? 0;
      if (count < 5) value |= (byte & 0x7f) << (7 * count);
      if (byte < 0x80) return value >>> 0;
    }
    this.giveUp();
    return 0;
  }

  private giveUp(): false {
    this.position = this.bytes.length;
    this.depth = 0;
    this.items = Number.POSITIVE_INFINITY;
    return false;
  }
}
