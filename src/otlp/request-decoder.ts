import type { Delivery } from '../record/record-batch.js';
import { OtlpDecodeError } from './otlp-codec.js';

/** An export request as records, and what had to be left out of it. */
export interface DecodedRequest {
  readonly delivery: Delivery;
  /** Spans and log records that cannot be kept: without a valid id, or with a time beyond int64. */
  readonly rejectedCount: number;
  /** Why, for `partial_success`; empty when nothing was rejected. */
  readonly rejectionMessage: string;
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

/**
 * How many records (a span makes two: its start and its end) one request may become. Each takes up to 3 KB until it is on
 * disk, however few bytes brought it, so that a body within its size limit could ask for 6 GB; these are at most about
 * 1 GB. What is rejected counts, too: it costs time. A body of 64 MiB as the engine fills it has about 80,000 of spans or 220,000 of log records.
 */
export const MAX_RECORDS = 300_000;

/** @throws OtlpDecodeError for more than {@link MAX_RECORDS}. */
export function checkRecordCount(count: number): void {
  if (count > MAX_RECORDS) {
    throw new OtlpDecodeError(`The body has more than ${MAX_RECORDS} records; send smaller batches.`);
  }
}
