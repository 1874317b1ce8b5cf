/** Nanoseconds since the Unix epoch. They exceed 2^53, so they never pass through `number`. */
export type UnixNano = bigint;

const DIGITS = /^\d{1,20}$/;
/** The largest time that OTLP's fixed64 and Parquet's INT64 can both carry. */
const MAX_UNIX_NANO = 2n ** 63n - 1n;

/** Reads a string of digits; `undefined` when it is none or beyond int64. */
export function parseUnixNano(text: string): UnixNano | undefined {
  if (!DIGITS.test(text)) return undefined;
  const value = BigInt(text);
  return value <= MAX_UNIX_NANO ? value : undefined;
}

/** The same moment in whole milliseconds, cut off. */
export function toUnixMs(time: UnixNano): number {
  return Number(time / 1_000_000n);
}
