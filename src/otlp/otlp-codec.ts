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

/**
 * How many levels of lists and maps an AnyValue may have, in both encodings. Protobuf implementations stop at 100
 * nested messages (protobufjs, C++, Java and Python by default); a map takes three of them, which leaves 32 levels.
 */
export const MAX_VALUE_LEVELS = 32;

/** @throws OtlpDecodeError when an AnyValue lies deeper than {@link MAX_VALUE_LEVELS}; the outermost one is at level 1. */
export function checkValueLevel(level: number): void {
  if (level > MAX_VALUE_LEVELS) {
    throw new OtlpDecodeError(`An attribute value is nested deeper than ${MAX_VALUE_LEVELS} levels.`);
  }
}

/**
 * How many protobuf fields, or JSON objects and lists, may be decoded at once. A hostile field of two bytes becomes up to
 * 540 bytes of memory, so that a body within the size limit could ask for 17 GB; these are at most about 1 GB. The
 * engine's data has a field in eleven bytes: its largest request (6.3 MB) has 0.6 million. Larger bodies in protobuf are
 * decoded piece by piece, so that what is full of text is taken up to the size limit.
 */
export const MAX_FIELDS = 2_000_000;

const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;

/** @throws OtlpDecodeError for more than {@link MAX_FIELDS}. */
export function checkFieldCount(count: number): void {
  if (count > MAX_FIELDS) {
    throw new OtlpDecodeError(`The body has more than ${MAX_FIELDS} fields; send smaller batches.`);
  }
}

/**
 * Counts a JSON text's objects and lists (and the braces inside its strings) before they are made.
 * @throws OtlpDecodeError for more than {@link MAX_FIELDS}.
 */
export function checkJsonFieldCount(body: Uint8Array): void {
  // An object takes two bytes, so most bodies need no counting.
  if (body.length <= 2 * MAX_FIELDS) return;
  let count = 0;
  for (const byte of body) if (byte === OPENING_BRACE || byte === OPENING_BRACKET) count++;
  checkFieldCount(count);
}
