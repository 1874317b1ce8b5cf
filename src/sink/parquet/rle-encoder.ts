import type { ByteBuffer } from './byte-buffer.js';

/** Values of a bit-packed run; its header then fits one byte (63 groups of 8). */
const MAX_LITERALS = 504;

/**
 * Parquet's RLE and bit-packing hybrid (Encodings.md), as values come: stretches of eight and more equal values become a
 * run, others are bit-packed in groups of eight. A stretch is given as one call, whatever its length.
 */
export class RleEncoder {
  private readonly literals: number[] = [];
  private runValue = 0;
  private runCount = 0;

  /** @param bitWidth 0 to 31; 0 for values that are all 0. */
  constructor(
    private readonly out: ByteBuffer,
    private readonly bitWidth: number,
  ) {}

  append(value: number, count = 1): void {
    if (value === this.runValue) {
      this.runCount += count;
      return;
    }
    this.endRun();
    this.runValue = value;
    this.runCount = count;
  }

  /** Writes what is pending; the encoder is then ready for the next page. */
  finish(): void {
    this.endRun();
    this.flushLiterals();
  }

  private endRun(): void {
    let count = this.runCount;
    this.runCount = 0;
    if (count === 0) return;
    // A run can begin only where a group of eight is full.
    const missing = (8 - (this.literals.length % 8)) % 8;
    const filling = Math.min(missing, count);
    for (let i = 0; i < filling; i++) this.pushLiteral(this.runValue);
    count -= filling;
    if (count >= 8) {
      this.flushLiterals();
      this.writeRun(count);
    } else {
      for (let i = 0; i < count; i++) this.pushLiteral(this.runValue);
    }
  }

  private pushLiteral(value: number): void {
    if (this.literals.push(value) === MAX_LITERALS) this.flushLiterals();
  }

  private writeRun(count: number): void {
    this.out.appendVarint(count * 2);
    for (let bits = 0; bits < this.bitWidth; bits += 8) this.out.appendUint8((this.runValue >>> bits) & 0xff);
  }

  /** Bit-packs the literals, the last group filled up with zeros. */
  private flushLiterals(): void {
    const { literals, bitWidth, out } = this;
    if (literals.length === 0) return;
    const groups = Math.ceil(literals.length / 8);
    out.appendVarint(groups * 2 + 1);
    let pending = 0;
    let pendingBits = 0;
    for (let i = 0; i < groups * 8; i++) {
      const value = literals[i] ?? 0;
      let left = bitWidth;
      let rest = value;
      while (left > 0) {
        const taken = Math.min(left, 8 - pendingBits);
        pending |= (rest & ((1 << taken) - 1)) << pendingBits;
        pendingBits += taken;
        rest >>>= taken;
        left -= taken;
        if (pendingBits === 8) {
          out.appendUint8(pending);
          pending = 0;
          pendingBits = 0;
        }
      }
    }
    literals.length = 0;
  }
}
