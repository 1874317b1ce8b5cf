import { OtlpDecodeError } from './otlp-codec.js';

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
