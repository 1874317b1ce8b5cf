import { ZstdUnpacker } from '../core/zstd.js';

/** Unpacks a page of zstd. @param size that it has to have, in bytes @throws Error for what is no such zstd */
export function unpackZstd(bytes: Uint8Array, size: number): Uint8Array {
  const page = new Uint8Array(size);
  const zstd = new ZstdUnpacker();
  let length = 0;
  const take = (blocks: Iterable<Uint8Array>) => {
    for (const block of blocks) {
      if (length + block.length > size) throw new Error('a page is longer than it says');
      page.set(block, length);
      length += block.length;
    }
  };
  take(zstd.push(bytes));
  take(zstd.end());
  return page.subarray(0, length);
}

/** A run's length goes on in further bytes when its four bits are all set. */
const LONG_RUN = 15;
const MIN_MATCH = 4;

/** Unpacks a block of LZ4 (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md). @param size as for `unpackZstd` @throws Error for what is none */
export function unpackLz4(bytes: Uint8Array, size: number): Uint8Array {
  const page = new Uint8Array(size);
  let [at, length] = [0, 0];
  const runLength = (bits: number): number => {
    let run = bits;
    for (let more = bits === LONG_RUN ? 255 : 0; more === 255; run += more) more = bytes[at++] ?? 0;
    return run;
  };
  while (at < bytes.length) {
    const token = bytes[at++] ?? 0;
    const literals = runLength(token >> 4);
    if (at + literals > bytes.length || length + literals > size) throw new Error('a page is no LZ4 block of its size');
    page.set(bytes.subarray(at, at + literals), length);
    at += literals;
    length += literals;
    if (at >= bytes.length) break;
    const distance = (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 256;
    at += 2;
    const match = runLength(token & LONG_RUN) + MIN_MATCH;
    if (distance === 0 || distance > length || length + match > size)
      throw new Error('a page is no LZ4 block of its size');
    // Byte by byte: a match may reach into what it makes itself.
    for (const end = length + match; length < end; length++) page[length] = page[length - distance] ?? 0;
  }
  return page.subarray(0, length);
}

/** Unpacks LZ4 as Hadoop frames it, which the codec's older name may stand for; `undefined` where it is not framed so. */
export function unpackHadoopLz4(bytes: Uint8Array, size: number): Uint8Array | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const page = new Uint8Array(size);
  let [at, length] = [0, 0];
  while (at < bytes.length) {
    if (at + 8 > bytes.length) return undefined;
    const unpackedBytes = view.getUint32(at);
    const packedBytes = view.getUint32(at + 4);
    at += 8;
    if (at + packedBytes > bytes.length || length + unpackedBytes > size) return undefined;
    page.set(unpackLz4(bytes.subarray(at, at + packedBytes), unpackedBytes), length);
    at += packedBytes;
    length += unpackedBytes;
  }
  return length === size ? page : undefined;
}
