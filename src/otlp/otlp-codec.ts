import type { Signal } from '../record/record-batch.js';
import type { ExportRequest } from './export-request.js';

/** OTLP's two encodings over HTTP. */
export type OtlpEncoding = 'protobuf' | 'json';

/** One encoding of OTLP's export requests and responses. */
export interface OtlpCodec {
  readonly encoding: OtlpEncoding;
  /** @throws OtlpDecodeError when the body is not such a request; unknown fields and keys are passed over. */
  decode(signal: Signal, body: Uint8Array): ExportRequest;
  encode(request: ExportRequest): Uint8Array;
  /** The response message: empty when nothing was rejected, else with `partial_success`. */
  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array;
  /** A `google.rpc.Status`. @param code its gRPC code, for example 3 INVALID_ARGUMENT. */
  encodeStatus(code: number, message: string): Uint8Array;
}

/** A body could not be read as what it claims to be. */
export class OtlpDecodeError extends Error {
  override readonly name = 'OtlpDecodeError';
}
