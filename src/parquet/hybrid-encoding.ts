import type { ByteBuffer } from './byte-buffer.js';

/** Bytes of equal bits that are worth a run of their own, in place of as many bytes of literals. */
const MIN_EQUAL_BYTES = 4;

/**
 * Writes numbers in Parquet's hybrid of runs and bit-packing (Encodings.md): stretches of eight and more equal values
 * become a run, others are bit-packed in groups of eight.
 * @param count how many of `values` to write
 * @param bitWidth 1 to 24
 */
export function appendHybrid(out: ByteBuffer, values: Uint32Array, count: number, bitWidth: number): void {
  let literals = 0;
  let at = 0;
  while (at < count) {
    const value = values[at];
    let end = at + 1;
    while (end < count && values[end] === value) end++;
    // A run can begin only where a group of eight is full.
    const begin = literals + ((at - literals + 7) & ~7);
    if (end - begin >= 8) {
      appendLiterals(out, values, literals, begin, bitWidth);
      out.appendVarint((end - begin) * 2);
      for (let bits = 0; bits < bitWidth; bits += 8) out.appendUint8(((value ?? 0) >>> bits) & 0xff);
      literals = end;
    }
    at = end;
  }
  appendLiterals(out, values, literals, count, bitWidth);
}

/** Writes bits, the lowest of each byte first, in the same hybrid with a width of one. @param count of bits */
export function appendHybridBits(out: ByteBuffer, bits: Uint8Array, count: number): void {
  const byteCount = (count + 7) >>> 3;
  let literals = 0;
  let at = 0;
  while (at < byteCount) {
    const byte = bits[at];
    let end = at + 1;
    if (byte === 0x00 || byte === 0xff) while (end < byteCount && bits[end] === byte) end++;
    if (end - at >= MIN_EQUAL_BYTES) {
      appendBitLiterals(out, bits, literals, at);
      // The last byte may hold fewer than eight bits.
      out.appendVarint((Math.min(end * 8, count) - at * 8) * 2);
      out.appendUint8(byte === 0xff ? 1 : 0);
      literals = end;
    }
    at = end;
  }
  appendBitLiterals(out, bits, literals, byteCount);
}

function appendBitLiterals(out: ByteBuffer, bits: Uint8Array, start: number, end: number): void {
  if (start >= end) return;
  out.appendVarint((end - start) * 2 + 1);
  for (let at = start; at < end; at++) out.appendUint8(bits[at] ?? 0);
}

/** Bit-packs values, the last group filled up with zeros. */
function appendLiterals(out: ByteBuffer, values: Uint32Array, start: number, end: number, bitWidth: number): void {
  if (start >= end) return;
  const groups = (end - start + 7) >>> 3;
  out.appendVarint(groups * 2 + 1);
  let pending = 0;
  let pendingBits = 0;
  for (let i = start; i < start + groups * 8; i++) {
    pending |= (i < end ? (values[i] ?? 0) : 0) << pendingBits;
    pendingBits += bitWidth;
    while (pendingBits >= 8) {
      out.appendUint8(pending & 0xff);
      pending >>>= 8;
      pendingBits -= 8;
    }
  }
}
