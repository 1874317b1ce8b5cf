import { setImmediate } from 'node:timers/promises';
import { COUNTED_BYTES, WireCounter } from '../../otlp/body-limits.js';
import { type OtlpCodec, OtlpDecodeError } from '../../otlp/otlp-codec.js';
import { splitJson, UncutJson } from '../../otlp/split-json.js';
import { LENGTH } from '../../otlp/wire-type.js';
import type { ForeignBatch, RecordBatch, Signal } from '../../record/record-batch.js';
import { recordCountOf } from '../../record/record-page.js';
import { GeneralDecoder } from '../otlp-request-decoder.js';
import {
  type BodyDecoder,
  checkRecordCount,
  type DecodedRequest,
  type PieceDecoder,
  type RequestDecoder,
} from '../request-decoder.js';
import { lengthDelimited, UNUSUAL, UnusualShape, WireCursor } from './wire-cursor.js';

/** What is decoded at a time, in bytes: some 500 spans, and at worst as many messages as keep others waiting for 100 ms. */
const PIECE_BYTES = 256 * 1024;
/** Fields that are counted at a time. */
const COUNTED_AT_ONCE = 20_000;
/** The longest body that is decoded in one go where it cannot be cut, in bytes. */
const MAX_UNCUT_BYTES = 1024 * 1024;

/**
 * Cuts a request into shorter ones, having counted what it holds; yields `undefined` where others may get their turn meanwhile.
 * @throws UnusualShape or UncutJson for what cannot be cut, OtlpDecodeError beyond one of `BODY_LIMITS`
 */
export type Splitter = (signal: Signal, body: Buffer, pieceBytes: number) => Generator<Buffer | undefined>;

/** Cuts protobuf. */
export function* splitProtobuf(signal: Signal, body: Buffer, pieceBytes: number): Generator<Buffer | undefined> {
  const counter = new WireCounter(signal, body);
  while (counter.count(COUNTED_AT_ONCE)) yield undefined;
  yield* splitRequest(body, pieceBytes);
}

/**
 * Decodes requests of any size. What a request holds is counted before anything is made of it; then it is decoded piece by piece, so that a
 * large body needs little more memory than its records. Between any two pieces others get their turn.
 */
export class LargeBodyDecoder implements BodyDecoder {
  constructor(
    private readonly signal: Signal,
    private readonly decoder: PieceDecoder,
    private readonly split: Splitter,
    private readonly pieceBytes = PIECE_BYTES,
  ) {}

  async decode(body: Uint8Array): Promise<DecodedRequest> {
    const steps = this.decodeInSteps(body);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) return step.value;
      await setImmediate();
    }
  }

  /** The same for who says when it goes on. @throws OtlpDecodeError */
  *decodeInSteps(body: Uint8Array): Generator<undefined, DecodedRequest> {
    if (body.length <= Math.min(COUNTED_BYTES, this.pieceBytes)) return this.decoder.decode(body);
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const pieces = new DecodedPieces();
    try {
      for (const piece of this.split(this.signal, bytes, this.pieceBytes)) {
        if (piece !== undefined) pieces.add(this.decodePiece(piece, pieces.count + 1));
        yield;
      }
      return pieces.whole();
    } catch (error) {
      pieces.release();
      if (!(error instanceof UnusualShape) && !(error instanceof UncutJson)) throw error;
      return this.decodeUncut(body);
    }
  }

  private decodePiece(piece: Buffer, number: number): DecodedRequest {
    try {
      return this.decoder.decode(piece);
    } catch (cause) {
      if (!(cause instanceof OtlpDecodeError) || number === 1) throw cause;
      // Places in it count from the part's beginning.
      throw new OtlpDecodeError(`Part ${number} of the body, of ${this.pieceBytes} bytes each: ${cause.message}`, {
        cause,
      });
    }
  }

  private decodeUncut(body: Uint8Array): DecodedRequest {
    if (body.length > MAX_UNCUT_BYTES) {
      throw new OtlpDecodeError(
        `The body is damaged, or framed as none of OpenTelemetry's libraries does it; such a one may have ${MAX_UNCUT_BYTES} bytes, this one has ${body.length}.`,
      );
    }
    return this.decoder.decode(body);
  }
}

/** What the pieces of a request became, put together in their order. */
class DecodedPieces {
  private readonly batches: RecordBatch[] = [];
  private readonly foreign: ForeignBatch[] = [];
  private readonly releases: (() => void)[] = [];
  private rejectedCount = 0;
  private rejectionMessage = '';
  private recordCount = 0;
  /** Pieces so far. */
  count = 0;

  /** @throws OtlpDecodeError for too many records in all */
  add({ delivery, rejectedCount, rejectionMessage }: DecodedRequest): void {
    this.count += 1;
    if (delivery.release !== undefined) this.releases.push(delivery.release);
    for (const batch of delivery.batches) {
      this.batches.push(batch);
      this.recordCount += recordCountOf(batch);
    }
    for (const batch of delivery.foreign) {
      this.foreign.push(batch);
      this.recordCount += batch.recordCount;
    }
    this.rejectedCount += rejectedCount;
    this.rejectionMessage ||= rejectionMessage;
    checkRecordCount(this.recordCount + this.rejectedCount);
  }

  whole(): DecodedRequest {
    const { batches, foreign, rejectedCount, rejectionMessage } = this;
    return { delivery: { batches, foreign, release: () => this.release() }, rejectedCount, rejectionMessage };
  }

  /** Gives back what the records stand in. */
  release(): void {
    for (const release of this.releases.splice(0)) release();
  }
}

/** Reads requests in JSON of any size. */
export function jsonBodies(codec: OtlpCodec, decoder: RequestDecoder): Readonly<Record<Signal, BodyDecoder>> {
  const of = (signal: Signal) =>
    new LargeBodyDecoder(signal, new GeneralDecoder(signal, { codec, decoder }), splitJson);
  return { traces: of('traces'), logs: of('logs') };
}

/** The largest resource or scope that is repeated in each piece, in bytes. */
const MAX_HEAD_BYTES = 1024 * 1024;
/** A piece has so many times the bytes of the resource and scope that the next one repeats, at least. */
const BYTES_A_HEAD_BYTE = 4;
/** `resource_spans` and `resource_logs`, and in them `scope_spans` and `scope_logs`, and in them `spans` and `log_records`. */
const GROUP = 1;
const SCOPE = 2;
const RECORD = 2;

/**
 * Cuts an OTLP request into requests of about `pieceBytes`: whole records, each piece with the resource and scope of its
 * own. A longer record makes its piece longer. Nothing but the framing is looked at.
 * @throws UnusualShape for what is not framed as the engine and OpenTelemetry's own libraries do, and for a resource or scope of more than 1 MiB.
 */
export function* splitRequest(body: Buffer, pieceBytes: number): Generator<Buffer> {
  const piece = new Piece(body);
  const cursor = new WireCursor(body);
  while (cursor.position < body.length) {
    const tag = cursor.tag(body.length);
    if (tag !== ((GROUP << 3) | LENGTH)) {
      // A field of a newer protocol, which no decoder here would read.
      cursor.skip(tag & 7, body.length);
      continue;
    }
    const groupEnd = cursor.lengthEnd(body.length);
    piece.openGroup(headOf(body, cursor.position, groupEnd));
    for (const [, scopeStart, scopeEnd] of fields(cursor, groupEnd, SCOPE)) {
      piece.openScope(headOf(body, scopeStart, scopeEnd));
      const scopeCursor = new WireCursor(body);
      scopeCursor.position = scopeStart;
      for (const [recordStart, , recordEnd] of fields(scopeCursor, scopeEnd, RECORD)) {
        if (piece.byteCount >= Math.max(pieceBytes, BYTES_A_HEAD_BYTE * piece.headByteCount)) yield piece.take();
        piece.add(recordStart, recordEnd);
      }
      piece.closeScope();
    }
    piece.closeGroup();
    if (piece.byteCount >= pieceBytes) yield piece.take();
  }
  yield piece.take();
}

/** Fields of one number: where the field begins, where its content begins, and where both end. */
function* fields(cursor: WireCursor, end: number, number: number): Generator<readonly [number, number, number]> {
  while (cursor.position < end) {
    const start = cursor.position;
    const tag = cursor.tag(end);
    const contentEnd = tag === ((number << 3) | LENGTH) ? cursor.lengthEnd(end) : undefined;
    if (contentEnd === undefined) cursor.skip(tag & 7, end);
    else {
      const contentStart = cursor.position;
      cursor.position = contentEnd;
      yield [start, contentStart, contentEnd];
    }
  }
}

/** Everything in a group or scope but what it groups. */
function headOf(body: Buffer, start: number, end: number): Buffer {
  const cursor = new WireCursor(body);
  cursor.position = start;
  const parts: Buffer[] = [];
  let byteCount = 0;
  while (cursor.position < end) {
    const fieldStart = cursor.position;
    const tag = cursor.tag(end);
    cursor.skip(tag & 7, end);
    if (tag === ((SCOPE << 3) | LENGTH)) continue;
    byteCount += cursor.position - fieldStart;
    if (byteCount > MAX_HEAD_BYTES) throw UNUSUAL;
    parts.push(body.subarray(fieldStart, cursor.position));
  }
  return Buffer.concat(parts);
}

/** A request being put together. */
class Piece {
  /** Bytes in it so far, about. */
  byteCount = 0;
  private groups: Buffer[] = [];
  private scopes: Buffer[] = [];
  private records: Buffer[] = [];
  private groupHead: Buffer | undefined;
  private scopeHead: Buffer | undefined;
  /** Records that stand side by side are copied together. */
  private runStart = 0;
  private runEnd = 0;

  constructor(private readonly body: Buffer) {}

  /** Of what is open, which the next piece repeats. */
  get headByteCount(): number {
    return (this.groupHead?.length ?? 0) + (this.scopeHead?.length ?? 0);
  }

  openGroup(head: Buffer): void {
    this.groupHead = head;
    this.byteCount += head.length + FRAME_BYTES;
  }

  openScope(head: Buffer): void {
    this.scopeHead = head;
    this.byteCount += head.length + FRAME_BYTES;
  }

  add(start: number, end: number): void {
    if (start !== this.runEnd) this.endRun(start);
    this.runEnd = end;
    this.byteCount += end - start;
  }

  closeScope(): void {
    this.endRun(0);
    if (this.scopeHead !== undefined) {
      this.scopes.push(lengthDelimited(SCOPE, Buffer.concat([this.scopeHead, ...this.records])));
    }
    this.records = [];
    this.scopeHead = undefined;
  }

  closeGroup(): void {
    if (this.groupHead !== undefined) {
      this.groups.push(lengthDelimited(GROUP, Buffer.concat([this.groupHead, ...this.scopes])));
    }
    this.scopes = [];
    this.groupHead = undefined;
  }

  /** The request so far; what is open goes on in the next one. */
  take(): Buffer {
    const { groupHead, scopeHead } = this;
    this.closeScope();
    this.closeGroup();
    const request = Buffer.concat(this.groups);
    this.groups = [];
    this.byteCount = 0;
    if (groupHead !== undefined) this.openGroup(groupHead);
    if (scopeHead !== undefined) this.openScope(scopeHead);
    return request;
  }

  private endRun(nextStart: number): void {
    if (this.runEnd > this.runStart) this.records.push(this.body.subarray(this.runStart, this.runEnd));
    this.runStart = nextStart;
    this.runEnd = nextStart;
  }
}

/** A tag and a length, and about what their Buffer costs. */
const FRAME_BYTES = 128;
