import type { OtlpCodec } from '../../otlp/otlp-codec.js';
import type { ForeignBatch, RecordBatch, Signal } from '../../record/record-batch.js';
import { checkRecordCount } from '../record-count.js';
import type { BodyDecoder, DecodedRequest, RequestDecoder } from '../request-decoder.js';
import { splitRequest } from './split-request.js';
import { UnusualShape } from './wire-cursor.js';

/** What is decoded at a time, in bytes; a decoded message takes some 30 times its bytes. */
const PIECE_BYTES = 1024 * 1024;

/** Decodes requests in protobuf piece by piece, so that a large body needs little more memory than its records. */
export class LargeBodyDecoder implements BodyDecoder {
  constructor(
    private readonly signal: Signal,
    private readonly general: { readonly codec: OtlpCodec; readonly decoder: RequestDecoder },
    private readonly pieceBytes = PIECE_BYTES,
  ) {}

  decode(body: Uint8Array): DecodedRequest {
    if (body.length <= this.pieceBytes) return this.decodePiece(body);
    try {
      return this.decodePieces(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    } catch (error) {
      if (!(error instanceof UnusualShape)) throw error;
      return this.decodePiece(body);
    }
  }

  private decodePieces(body: Buffer): DecodedRequest {
    const batches: RecordBatch[] = [];
    const foreign: ForeignBatch[] = [];
    let rejectedCount = 0;
    let rejectionMessage = '';
    let recordCount = 0;
    for (const piece of splitRequest(body, this.pieceBytes)) {
      const decoded = this.decodePiece(piece);
      for (const batch of decoded.delivery.batches) {
        batches.push(batch);
        recordCount += batch.records.length;
      }
      for (const batch of decoded.delivery.foreign) {
        foreign.push(batch);
        recordCount += batch.recordCount;
      }
      rejectedCount += decoded.rejectedCount;
      checkRecordCount(recordCount + rejectedCount);
      rejectionMessage ||= decoded.rejectionMessage;
    }
    return { delivery: { batches, foreign }, rejectedCount, rejectionMessage };
  }

  private decodePiece(body: Uint8Array): DecodedRequest {
    return this.general.decoder.decode(this.general.codec.decode(this.signal, body));
  }
}
