import protobuf from 'protobufjs';

const TYPE_URL = 'type.googleapis.com/google.rpc.RetryInfo';
/** Field numbers and their wire type, length-delimited or a varint (google/rpc/status.proto, error_details.proto). */
const STATUS_DETAILS = (3 << 3) | 2;
const ANY_TYPE_URL = (1 << 3) | 2;
const ANY_VALUE = (2 << 3) | 2;
const RETRY_DELAY = (1 << 3) | 2;
const DURATION_SECONDS = 1 << 3;
const DURATION_NANOS = 2 << 3;

/**
 * When a sender may try again, as the field `details` of a `google.rpc.Status`: appended to an encoded Status, it is
 * part of it.
 */
export function encodeRetryInfo(retryAfterMs: number): Uint8Array {
  const seconds = Math.floor(retryAfterMs / 1_000);
  const nanos = (retryAfterMs % 1_000) * 1_000_000;
  return protobuf.Writer.create()
    .uint32(STATUS_DETAILS)
    .fork()
    .uint32(ANY_TYPE_URL)
    .string(TYPE_URL)
    .uint32(ANY_VALUE)
    .fork()
    .uint32(RETRY_DELAY)
    .fork()
    .uint32(DURATION_SECONDS)
    .uint32(seconds)
    .uint32(DURATION_NANOS)
    .uint32(nanos)
    .ldelim()
    .ldelim()
    .ldelim()
    .finish();
}
