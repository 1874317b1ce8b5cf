import { setImmediate } from 'node:timers/promises';
import type { Signal } from '../../record/record-batch.js';
import { UnusualShape, WireCursor } from '../any-value.js';
import { COUNTED_BYTES } from '../body-limits.js';
import { type OtlpCodec, OtlpDecodeError, type OtlpEncoding } from '../otlp-codec.js';
import { splitJson, UncutJson } from '../split-json.js';
import { FIXED64, LENGTH, tagOf } from '../wire-type.js';
import {
  BYTES_A_HEAD_BYTE,
  countProtobuf,
  fields,
  GROUP,
  headOf,
  RECORD as ITEM,
  MAX_UNCUT_BYTES,
  PIECE_BYTES,
  RequestPiece,
  SCOPE,
  splitRequest,
} from './wire-decoder.js';

/** A request in protobuf with spans or log records of one trace. */
export interface TraceRequest {
  /** In lower-case hexadecimal; `null` for log records outside any trace. */
  readonly traceId: string | null;
  readonly bytes: Buffer;
}

/** A request as one for each of its traces, or several for a long one. */
export interface TraceRequests {
  readonly requests: readonly TraceRequest[];
  /** Spans or log records in them. */
  readonly itemCount: number;
  /** Spans without a trace id, and what is too long, which are in none of them. */
  readonly rejectedCount: number;
}

/** Fields of a log record. */
const LOG = {
  time: tagOf(1, FIXED64),
  traceId: tagOf(9, LENGTH),
  spanId: tagOf(10, LENGTH),
  observedTime: tagOf(11, FIXED64),
};
/** Log records that are looked at before others get their turn. */
const LOGS_AT_ONCE = 10_000;
/** The field with a trace id. */
const TRACE_ID = { traces: 1, logs: 9 } as const satisfies Record<Signal, number>;
const TRACE_ID_BYTES = 16;
/** What resources and scopes may take that are repeated for each trace, in bytes. */
const MAX_REPEATED_BYTES = 16 * 1024 * 1024;

/**
 * Cuts requests of one signal by trace, and long ones by spans or log records (`cutRequest`). Each has the resource and scope of
 * its own. Items are copied as they are: nothing but framing and trace ids is looked at.
 */
export class TraceSplitter {
  constructor(
    private readonly signal: Signal,
    private readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>,
  ) {}

  /**
   * @param maxBytes for which a request is cut; a longer item makes its request longer
   * @returns nothing that refers to the body
   * @throws OtlpDecodeError when the body is no such request, or holds more than one may
   */
  async split(encoding: OtlpEncoding, body: Uint8Array, maxBytes: number): Promise<TraceRequests> {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    try {
      const found = new FoundTraces(this.signal, bytes.length);
      const onTooLong = () => {
        found.rejectedCount += 1;
      };
      for (const piece of this.pieces(encoding, bytes, maxBytes, onTooLong)) {
        if (piece === undefined) await setImmediate();
        else found.add(piece);
      }
      return found;
    } catch (error) {
      if (!(error instanceof UnusualShape) && !(error instanceof UncutJson)) throw error;
      return this.splitUncut(encoding, bytes, maxBytes);
    }
  }

  /** In protobuf; `undefined` where others may get their turn. */
  private *pieces(
    encoding: OtlpEncoding,
    body: Buffer,
    maxBytes: number,
    onTooLong: () => void,
  ): Generator<Buffer | undefined> {
    const { signal } = this;
    if (encoding === 'protobuf') {
      const isShort = body.length <= Math.min(COUNTED_BYTES, maxBytes);
      if (!isShort) yield* countProtobuf(signal, body);
      if (isShort) yield Buffer.from(body);
      else yield* cutRequest(signal, body, maxBytes);
      return;
    }
    const framed: Buffer[] = [];
    for (const piece of splitJson(signal, body, PIECE_BYTES, onTooLong)) {
      if (piece !== undefined) framed.push(this.framedAnew(encoding, piece));
      yield undefined;
    }
    // Concatenated requests are one request.
    yield* cutRequest(signal, Buffer.concat(framed), maxBytes);
  }

  /** What is framed as no encoder does it is framed anew by protobufjs, which also says what is wrong with it. */
  private splitUncut(encoding: OtlpEncoding, body: Buffer, maxBytes: number): TraceRequests {
    if (body.length > MAX_UNCUT_BYTES) {
      throw new OtlpDecodeError(
        `The body is damaged, or framed as none of OpenTelemetry's libraries does it; such a one may have ${MAX_UNCUT_BYTES} bytes, this one has ${body.length}.`,
      );
    }
    const found = new FoundTraces(this.signal, body.length);
    for (const piece of cutRequest(this.signal, this.framedAnew(encoding, body), maxBytes)) {
      if (piece !== undefined) found.add(piece);
    }
    return found;
  }

  private framedAnew(encoding: OtlpEncoding, body: Buffer): Buffer {
    const { signal, codecs } = this;
    return Buffer.from(codecs.protobuf.encode(codecs[encoding].decode(signal, body)));
  }
}

/** The traces of a request, piece by piece. */
class FoundTraces implements TraceRequests {
  readonly requests: TraceRequest[] = [];
  itemCount = 0;
  rejectedCount = 0;
  private readonly heads: RepeatedHeads;

  constructor(
    private readonly signal: Signal,
    bodyBytes: number,
  ) {
    this.heads = new RepeatedHeads(bodyBytes);
  }

  /** @throws UnusualShape; OtlpDecodeError for too many traces of too large a resource */
  add(piece: Buffer): void {
    const byTrace = new Map<string, TracePart>();
    const rejectedBefore = this.rejectedCount;
    for (const item of itemsOf(piece)) {
      const traceId = traceIdOf(cursorAt(piece, item.contentStart), item.end, TRACE_ID[this.signal]);
      if (traceId === null && this.signal === 'traces') {
        this.rejectedCount += 1;
        continue;
      }
      this.itemCount += 1;
      const key = traceId ?? '';
      const part = byTrace.get(key) ?? new TracePart(traceId, piece);
      byTrace.set(key, part);
      this.heads.count(part.add(item));
    }
    const [first] = byTrace.values();
    const isWhole = byTrace.size === 1 && this.rejectedCount === rejectedBefore;
    if (first !== undefined && isWhole) this.requests.push({ traceId: first.traceId, bytes: piece });
    else for (const part of byTrace.values()) this.requests.push({ traceId: part.traceId, bytes: part.take() });
  }
}

/**
 * Cuts a request as `splitRequest` does, with all log records in one piece that may be equal: those of one trace, span and time.
 * OTLP gives them no id, so whoever reads the pieces tells equal ones of a request from a request that came twice by counting
 * them in each. Such records that are longer together than a piece may be make theirs longer.
 * @returns pieces; `undefined` where others may get their turn
 * @throws UnusualShape; OtlpDecodeError for too large a resource of too many such records
 */
export function* cutRequest(signal: Signal, body: Buffer, maxBytes: number): Generator<Buffer | undefined> {
  if (signal === 'traces' || body.length <= maxBytes) {
    yield* splitRequest(body, maxBytes);
    return;
  }
  const equals = new Map<string, ItemRange[]>();
  let logCount = 0;
  for (const item of itemsOf(body)) {
    logCount += 1;
    if (logCount % LOGS_AT_ONCE === 0) yield undefined;
    const key = equalityOf(body, item) ?? `${logCount}`;
    const list = equals.get(key);
    if (list === undefined) equals.set(key, [item]);
    else list.push(item);
  }
  const heads = new RepeatedHeads(body.length);
  let part = new TracePart(null, body);
  for (const items of equals.values()) {
    const byteCount = items.reduce((sum, { start, end }) => sum + end - start, 0);
    if (!part.hasRoomFor(byteCount, maxBytes)) {
      yield part.take();
      part = new TracePart(null, body);
    }
    for (const item of items) heads.count(part.add(item));
  }
  yield part.take();
}

/** Where an item stands, with its tag, and what it shares with others. */
interface ItemRange {
  readonly start: number;
  /** Behind its tag and length. */
  readonly contentStart: number;
  readonly end: number;
  readonly groupHead: Buffer;
  readonly scopeHead: Buffer;
}

/** @throws UnusualShape */
function* itemsOf(request: Buffer): Generator<ItemRange> {
  for (const [, groupStart, groupEnd] of fields(cursorAt(request, 0), request.length, GROUP)) {
    const groupHead = headOf(request, groupStart, groupEnd);
    for (const [, scopeStart, scopeEnd] of fields(cursorAt(request, groupStart), groupEnd, SCOPE)) {
      const scopeHead = headOf(request, scopeStart, scopeEnd);
      for (const [start, contentStart, end] of fields(cursorAt(request, scopeStart), scopeEnd, ITEM)) {
        yield { start, contentStart, end, groupHead, scopeHead };
      }
    }
  }
}

/** What log records that are equal have in common, as text; `undefined` outside any trace, where all are kept. @throws UnusualShape */
function equalityOf(bytes: Buffer, { contentStart, end }: ItemRange): string | undefined {
  const cursor = cursorAt(bytes, contentStart);
  let [traceId, spanId, time, observedTime] = ['', '', '', ''];
  while (cursor.position < end) {
    const tag = cursor.tag(end);
    cursor.skip(tag & 7, end);
    if (tag === LOG.time) time = setBytes(cursor, 8);
    else if (tag === LOG.observedTime && time === '') observedTime = setBytes(cursor, 8);
    else if (tag === LOG.traceId) traceId = setBytes(cursor, TRACE_ID_BYTES);
    else if (tag === LOG.spanId) spanId = setBytes(cursor, 8);
  }
  return traceId === '' ? undefined : traceId + spanId + (time === '' ? observedTime : time);
}

/** The last so many bytes of a field as text, or none where they are zeros, which is as good. */
function setBytes({ bytes, position }: WireCursor, byteCount: number): string {
  const text = bytes.toString('latin1', position - byteCount, position);
  return UNSET.startsWith(text) ? '' : text;
}

const UNSET = '\0'.repeat(TRACE_ID_BYTES);

/** Bytes of resources and scopes in what was made of a body. */
class RepeatedHeads {
  private byteCount = 0;

  constructor(private readonly bodyBytes: number) {}

  /** A short body may not ask for a long time of copying. @throws OtlpDecodeError */
  count(headBytes: number): void {
    this.byteCount += headBytes;
    if (this.byteCount <= 2 * this.bodyBytes + MAX_REPEATED_BYTES) return;
    throw new OtlpDecodeError(
      `The body's resources and scopes, repeated for each of its traces, are more than ${MAX_REPEATED_BYTES} bytes; send smaller batches.`,
    );
  }
}

/** What a request has of one trace. */
class TracePart {
  private readonly piece: RequestPiece;
  private groupHead: Buffer | undefined;
  private scopeHead: Buffer | undefined;

  constructor(
    readonly traceId: string | null,
    body: Buffer,
  ) {
    this.piece = new RequestPiece(body);
  }

  /** Whether it holds nothing, or that many bytes of items fit in. */
  hasRoomFor(byteCount: number, maxBytes: number): boolean {
    const { piece } = this;
    const mostBytes = Math.max(maxBytes, BYTES_A_HEAD_BYTE * piece.headByteCount);
    return !piece.hasRecords || piece.byteCount + byteCount <= mostBytes;
  }

  /** Adds an item. @returns how many bytes of its resource and scope were added */
  add({ start, end, groupHead, scopeHead }: ItemRange): number {
    const { piece } = this;
    let headBytes = 0;
    if (this.scopeHead !== scopeHead) {
      piece.closeScope();
      if (this.groupHead !== groupHead) {
        piece.closeGroup();
        piece.openGroup(groupHead);
        headBytes = groupHead.length;
      }
      piece.openScope(scopeHead);
      headBytes += scopeHead.length;
      this.groupHead = groupHead;
      this.scopeHead = scopeHead;
    }
    piece.add(start, end);
    return headBytes;
  }

  take(): Buffer {
    return this.piece.take();
  }
}

function cursorAt(bytes: Buffer, position: number): WireCursor {
  const cursor = new WireCursor(bytes);
  cursor.position = position;
  return cursor;
}

/** The trace id of an item; `null` where it has none. Of several the last one counts. @throws UnusualShape */
function traceIdOf(cursor: WireCursor, end: number, field: number): string | null {
  let traceId: string | null = null;
  while (cursor.position < end) {
    const tag = cursor.tag(end);
    const { position } = cursor;
    cursor.skip(tag & 7, end);
    if (tag !== ((field << 3) | LENGTH)) continue;
    const text = cursor.bytes.toString('hex', cursor.position - TRACE_ID_BYTES, cursor.position);
    traceId = cursor.position - position !== TRACE_ID_BYTES + 1 || /^0*$/.test(text) ? null : text;
  }
  return traceId;
}
