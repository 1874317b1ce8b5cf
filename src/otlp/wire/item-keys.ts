import type { Digested } from '../../record/log-digest.js';
import type { Signal } from '../../record/record-batch.js';
import { spanIdOf } from '../../record/span-id-table.js';
import { parseTraceId, type TraceId, type UnixNano } from '../../record/telemetry-record.js';
import { UNUSUAL, UnusualShape, WireCursor } from '../any-value.js';
import { FIXED64, LENGTH, tagOf } from '../wire-type.js';
import { fields, GROUP, RECORD as ITEM, SCOPE } from './wire-decoder.js';

/** What tells the items of a request from others, as the JSONL has it, too. */
export interface ItemKeys {
  /** The trace of all of them. */
  readonly traceId: TraceId;
  /** The halves of spans' ids, one behind the other. */
  readonly spanIds: readonly number[];
  readonly logs: readonly Digested[];
}

/** A span as encoders write it begins with its ids: the tags of both with their lengths, and how long that is. */
const TRACE_ID_HEAD = (tagOf(1, LENGTH) << 8) | 16;
const SPAN_ID_HEAD = (tagOf(2, LENGTH) << 8) | 8;
const SPAN_HEAD_BYTES = 28;
/** Fields of a log record, and the text in its body. */
const LOG = {
  time: tagOf(1, FIXED64),
  body: tagOf(5, LENGTH),
  traceId: tagOf(9, LENGTH),
  spanId: tagOf(10, LENGTH),
  eventName: tagOf(12, LENGTH),
};
const TEXT = tagOf(1, LENGTH);

/**
 * Reads the keys off a request in protobuf, and nothing else of it.
 * @returns `undefined` for a request of several traces or none, and for what is laid out otherwise than the engine does it: that has to be decoded
 */
export function readItemKeys(signal: Signal, body: Uint8Array): ItemKeys | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  try {
    return signal === 'traces' ? spanKeys(bytes) : logKeys(bytes);
  } catch (error) {
    if (error instanceof UnusualShape) return undefined;
    throw error;
  }
}

function spanKeys(bytes: Buffer): ItemKeys | undefined {
  const spanIds: number[] = [];
  const trace = new OneTrace(bytes);
  for (const [start, end] of itemRanges(bytes)) {
    if (end - start < SPAN_HEAD_BYTES || bytes.readUInt16BE(start) !== TRACE_ID_HEAD) return undefined;
    if (bytes.readUInt16BE(start + 18) !== SPAN_ID_HEAD || !trace.has(start + 2)) return undefined;
    spanIds.push(bytes.readInt32BE(start + 20), bytes.readInt32BE(start + 24));
  }
  const { traceId } = trace;
  return traceId && { traceId, spanIds, logs: [] };
}

function logKeys(bytes: Buffer): ItemKeys | undefined {
  const logs: Digested[] = [];
  const trace = new OneTrace(bytes);
  for (const [start, end] of itemRanges(bytes)) {
    const log = readLog(bytes, start, end, trace);
    if (log === undefined) return undefined;
    logs.push(log);
  }
  const { traceId } = trace;
  return traceId && { traceId, spanIds: [], logs };
}

function readLog(bytes: Buffer, start: number, end: number, trace: OneTrace): Digested | undefined {
  const cursor = new WireCursor(bytes);
  cursor.position = start;
  let [spanId, eventType, body]: [Digested['spanId'], string, string | undefined] = [null, '', ''];
  let timeUnixNano = 0n;
  let isOfTrace = false;
  while (cursor.position < end) {
    const tag = cursor.tag(end);
    const { position } = cursor;
    cursor.skip(tag & 7, end);
    const to = cursor.position;
    // Ids have one byte before them, which is their length.
    if (tag === LOG.time) timeUnixNano = bytes.readBigUInt64LE(position);
    else if (tag === LOG.traceId) isOfTrace = to - position === 17 && trace.has(position + 1);
    else if (tag === LOG.spanId && to - position === 9) {
      spanId = spanIdOf(bytes.readInt32BE(position + 1), bytes.readInt32BE(position + 5));
    } else if (tag === LOG.eventName) eventType = textAt(bytes, position, to);
    else if (tag === LOG.body) body = bodyAt(bytes, position, to);
  }
  if (!isOfTrace || timeUnixNano === 0n || eventType === '' || body === undefined) return undefined;
  return { spanId, timeUnixNano: timeUnixNano as UnixNano, eventType, body };
}

/** Text of a body that is one. @param start where its length stands */
function bodyAt(bytes: Buffer, start: number, end: number): string | undefined {
  const cursor = new WireCursor(bytes);
  cursor.position = start;
  cursor.lengthEnd(end);
  if (cursor.position === end) return '';
  return cursor.tag(end) === TEXT ? textAt(bytes, cursor.position, end) : undefined;
}

/** @param start where its length stands */
function textAt(bytes: Buffer, start: number, end: number): string {
  const cursor = new WireCursor(bytes);
  cursor.position = start;
  if (cursor.lengthEnd(end) !== end) throw UNUSUAL;
  return bytes.toString('utf8', cursor.position, end);
}

/** Where the content of each item begins and ends. @throws UnusualShape */
function* itemRanges(bytes: Buffer): Generator<readonly [start: number, end: number]> {
  const cursor = new WireCursor(bytes);
  for (const [, , groupEnd] of contents(cursor, bytes.length, GROUP)) {
    for (const [, , scopeEnd] of contents(cursor, groupEnd, SCOPE)) {
      for (const [, start, end] of fields(cursor, scopeEnd, ITEM)) yield [start, end];
    }
  }
}

/** As `fields`, with the cursor at the beginning of each one's content. */
function* contents(cursor: WireCursor, end: number, number: number): ReturnType<typeof fields> {
  for (const field of fields(cursor, end, number)) {
    const [, start, fieldEnd] = field;
    cursor.position = start;
    yield field;
    cursor.position = fieldEnd;
  }
}

/** The one trace of a request. */
class OneTrace {
  /** Where its id stands for the first time. */
  private at: number | undefined;

  constructor(private readonly bytes: Buffer) {}

  get traceId(): TraceId | undefined {
    return this.at === undefined ? undefined : parseTraceId(this.bytes.toString('hex', this.at, this.at + 16));
  }

  /** Whether the id that begins at a place is that of the first item. */
  has(start: number): boolean {
    this.at ??= start;
    return this.bytes.compare(this.bytes, this.at, this.at + 16, start, start + 16) === 0;
  }
}
