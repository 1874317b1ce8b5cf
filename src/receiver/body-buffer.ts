import type { BodyPool } from './body-pool.js';

/** The smallest buffer that pieces are gathered in, in bytes. */
const MIN_CAPACITY_BYTES = 16 * 1024;

/** A body that was read whole. */
export interface WholeBody {
  readonly byteLength: number;
  /** All of it; valid until `release`. */
  bytes(): Uint8Array;
  /** Gives its memory back; the bytes are not to be read any more. */
  release(): void;
}

/**
 * Gathers a body's pieces in one buffer that doubles when it is full. Kept one by one, pieces of a byte each would
 * take some 400 times their size: 3 MB sent so took 1.3 GB.
 */
export class BodyBuffer implements WholeBody {
  private buffer: Buffer | undefined;
  private isFromPool = false;
  private used = 0;

  /** @param expectedBytes as announced; that much is set aside once a second piece comes. 0 when unknown. */
  constructor(
    private readonly expectedBytes: number,
    private readonly pool: BodyPool,
  ) {}

  get byteLength(): number {
    return this.used;
  }

  /** @param piece not changed afterwards by whoever made it: a single piece is kept as it is. */
  append(piece: Buffer): void {
    const length = this.used + piece.length;
    if (this.buffer === undefined) {
      this.buffer = piece;
    } else {
      if (length > this.buffer.length || this.buffer.length < MIN_CAPACITY_BYTES) this.grow(length);
      piece.copy(this.buffer, this.used);
    }
    this.used = length;
  }

  /** Everything appended so far; valid until the next piece, or `release`. */
  bytes(): Uint8Array {
    return this.buffer?.subarray(0, this.used) ?? new Uint8Array();
  }

  /** Gives its memory back; the bytes are not to be read any more. */
  release(): void {
    if (this.buffer !== undefined && this.isFromPool) this.pool.giveBack(this.buffer);
    this.buffer = undefined;
    this.isFromPool = false;
    this.used = 0;
  }

  private grow(neededBytes: number): void {
    const capacity = Math.max(neededBytes, this.expectedBytes, 2 * (this.buffer?.length ?? 0), MIN_CAPACITY_BYTES);
    const grown = this.pool.take(capacity);
    this.buffer?.copy(grown, 0, 0, this.used);
    if (this.buffer !== undefined && this.isFromPool) this.pool.giveBack(this.buffer);
    this.buffer = grown;
    this.isFromPool = true;
  }
}
