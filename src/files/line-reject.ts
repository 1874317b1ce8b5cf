import type { ByteLine, LongLine } from './line-splitter.js';
import type { Reject } from './record-source.js';

/** What is kept of a line that is no record, in bytes. */
const TEXT_BYTES = 4096;

/**
 * The reject for a line.
 * @param reason why it is none, without a full stop.
 * @param count of the records that it stands for.
 */
export function rejectLine({ number, offset, bytes }: ByteLine, reason: string, count = 1): Reject {
  const text = Buffer.from(bytes.subarray(0, TEXT_BYTES)).toString('utf8');
  return { place: `line ${number}`, reason, count, offset, text };
}

/** The reject for a line that is longer than the limit. */
export function rejectLongLine({ head, ...place }: LongLine, maxLineBytes: number): Reject {
  return rejectLine({ ...place, bytes: head }, tooLongReason(maxLineBytes));
}

/** Why a line that is longer than the limit is none. */
export function tooLongReason(maxLineBytes: number): string {
  return `longer than ${maxLineBytes} bytes`;
}
