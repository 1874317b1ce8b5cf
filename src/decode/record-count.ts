import { OtlpDecodeError } from '../otlp/otlp-codec.js';

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
