import type { ExportRequest } from '../otlp/export-request.js';
import type { Delivery } from '../record/record-batch.js';

/** An export request as records, and what had to be left out of it. */
export interface DecodedRequest {
  readonly delivery: Delivery;
  /** Spans and log records that cannot be kept: without a valid id, or with a time beyond int64. */
  readonly rejectedCount: number;
  /** Why, for `partial_success`; empty when nothing was rejected. */
  readonly rejectionMessage: string;
}

/** Makes telemetry records of an OTLP request. */
export interface RequestDecoder {
  decode(request: ExportRequest): DecodedRequest;
}

/** Makes telemetry records of a short request's bytes, in one go. */
export interface PieceDecoder {
  /** @throws OtlpDecodeError when the body is no such request */
  decode(body: Uint8Array): DecodedRequest;
}

/** Makes telemetry records of a request's bytes, however many; a long one in parts, between which others get their turn. */
export interface BodyDecoder {
  /**
   * @param body not to be changed before it is decoded
   * @throws OtlpDecodeError when the body is no such request, or holds more than one may
   */
  decode(body: Uint8Array): Promise<DecodedRequest>;
}
