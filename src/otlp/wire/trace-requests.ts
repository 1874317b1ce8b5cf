import { setImmediate } from 'node:timers/promises';
import type { Signal } from '../../record/record-batch.js';
import { UnusualShape, WireCursor } from '../any-value.js';
import { COUNTED_BYTES } from '../body-limits.js';
import { type OtlpCodec, OtlpDecodeError, type OtlpEncoding } from '../otlp-codec.js';
import { splitJson, UncutJson } from '../split-json.js';
import { LENGTH } from '../wire-type.js';
import {
  fields,
  GROUP,
  headOf,
  RECORD as ITEM,
  MAX_UNCUT_BYTES,
  PIECE_BYTES,
  RequestPiece,
  SCOPE,
  splitProtobuf,
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
  /** Spans without a trace id, which are in none of them. */
  readonly rejectedCount: number;
}

/** The field with a trace id. */
const TRACE_ID = { traces: 1, logs: 9 } as const satisfies Record<Signal, number>;
const TRACE_ID_BYTES = 16;
/** What resources and scopes may take that are repeated for each trace, in bytes. */
const MAX_REPEATED_BYTES = 16 * 1024 * 1024;

/**
 * Cuts requests of one signal by trace, and long ones by spans or log records. Each has the resource and scope of its own. Items
 * are copied as they are: nothing but framing and trace ids is looked at.
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
      for (const piece of this.pieces(encoding, bytes, maxBytes)) {
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
  private *pieces(encoding: OtlpEncoding, body: Buffer, maxBytes: number): Generator<Buffer | undefined> {
    const { signal } = this;
    if (encoding === 'protobuf') {
      if (body.length <= Math.min(COUNTED_BYTES, maxBytes)) yield Buffer.from(body);
      else yield* splitProtobuf(signal, body, maxBytes);
      return;
    }
    for (const piece of splitJson(signal, body, PIECE_BYTES)) {
      if (piece !== undefined) yield* splitRequest(this.framedAnew(encoding, piece), maxBytes);
      yield undefined;
    }
  }

  /** What is framed as no encoder does it is framed anew by protobufjs, which also says what is wrong with it. */
  private splitUncut(encoding: OtlpEncoding, body: Buffer, maxBytes: number): TraceRequests {
    if (body.length > MAX_UNCUT_BYTES) {
      throw new OtlpDecodeError(
        `The body is damaged, or framed as none of OpenTelemetry's libraries does it; such a one may have ${MAX_UNCUT_BYTES} bytes, this one has ${body.length}.`,
      );
    }
    const found = new FoundTraces(this.signal, body.length);
    for (const piece of splitRequest(this.framedAnew(encoding, body), maxBytes)) found.add(piece);
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
  /** Bytes of resources and scopes in the requests. */
  private headBytes = 0;

  constructor(
    private readonly signal: Signal,
    private readonly bodyBytes: number,
  ) {}

  /** @throws UnusualShape; OtlpDecodeError for too many traces of too large a resource */
  add(piece: Buffer): void {
    const byTrace = new Map<string, TracePart>();
    const rejectedBefore = this.rejectedCount;
    for (const [, groupStart, groupEnd] of fields(cursorAt(piece, 0), piece.length, GROUP)) {
      const groupHead = headOf(piece, groupStart, groupEnd);
      for (const [, scopeStart, scopeEnd] of fields(cursorAt(piece, groupStart), groupEnd, SCOPE)) {
        const scopeHead = headOf(piece, scopeStart, scopeEnd);
        for (const [start, itemStart, end] of fields(cursorAt(piece, scopeStart), scopeEnd, ITEM)) {
          const traceId = traceIdOf(cursorAt(piece, itemStart), end, TRACE_ID[this.signal]);
          if (traceId === null && this.signal === 'traces') {
            this.rejectedCount += 1;
            continue;
          }
          this.itemCount += 1;
          const key = traceId ?? '';
          const part = byTrace.get(key) ?? new TracePart(traceId, piece);
          byTrace.set(key, part);
          this.count(part.add(start, end, groupHead, scopeHead));
        }
      }
    }
    const [first] = byTrace.values();
    const isWhole = byTrace.size === 1 && this.rejectedCount === rejectedBefore;
    if (first !== undefined && isWhole) this.requests.push({ traceId: first.traceId, bytes: piece });
    else for (const part of byTrace.values()) this.requests.push({ traceId: part.traceId, bytes: part.take() });
  }

  /** A short body may not ask for a long time of copying. */
  private count(headBytes: number): void {
    this.headBytes += headBytes;
    if (this.headBytes <= 2 * this.bodyBytes + MAX_REPEATED_BYTES) return;
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

  /** Adds an item. @returns how many bytes of its resource and scope were added */
  add(start: number, end: number, groupHead: Buffer, scopeHead: Buffer): number {
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
