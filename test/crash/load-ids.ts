/**
 * The ids of the load's runs. They say which run and which span they are, so that a sink can count millions of them:
 * trace id = 8 bytes in common, run number (8 bytes); span id = run number (4 bytes), copy (1 byte), ordinal (3 bytes).
 */
const COMMON = Buffer.from('5eedb41d9e000000', 'hex');

/** The trace id of a run. */
export function traceIdOf(runNumber: number): Buffer {
  const id = Buffer.alloc(16);
  COMMON.copy(id);
  id.writeUInt32BE(runNumber, 12);
  return id;
}

/** The run's number; `undefined` for a trace that is not the load's. */
export function runNumberOf(traceId: Buffer): number | undefined {
  return traceId.length === 16 && traceId.compare(COMMON, 0, 8, 0, 8) === 0 ? traceId.readUInt32BE(12) : undefined;
}

/** The last four bytes of a span's id: which copy of which span of its sample. */
export function spanNumber(copy: number, ordinal: number): number {
  return ((copy << 24) | (ordinal + 1)) >>> 0;
}

/** A span of the load as one number, below 2^53 for two million runs. */
export function spanKey(runNumber: number, number: number): number {
  return runNumber * 2 ** 32 + number;
}

/** The same from a span's id; `undefined` where it is none of this run: a span that somebody made up. */
export function spanKeyOf(runNumber: number, spanId: Buffer): number | undefined {
  if (spanId.length !== 8 || spanId.readUInt32BE(0) !== runNumber) return undefined;
  return spanKey(runNumber, spanId.readUInt32BE(4));
}
