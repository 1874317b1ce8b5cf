import { setImmediate } from 'node:timers/promises';
import type { ForeignBatch, RecordBatch, Signal } from '../../record/record-batch.js';
import { recordCountOf } from '../../record/record-page.js';
import { COUNTED_BYTES, WireCounter } from '../body-limits.js';
import { OtlpDecodeError } from '../otlp-codec.js';
import { type BodyDecoder, checkRecordCount, type DecodedRequest, type PieceDecoder } from '../request-decoder.js';
import { UncutJson } from '../split-json.js';
import { splitRequest } from './request-piece.js';
import { UnusualShape } from './wire-cursor.js';

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
