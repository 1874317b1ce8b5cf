import { Decompress } from 'fzstd';

/** The default limit for a frame's window: 32 MiB, which all compression levels up to 20 keep to. */
const MAX_WINDOW_BYTES = 32 * 1024 * 1024;
/** Bytes that are decompressed at a time. Four bytes may stand for a block of 128 KiB, so this bounds the output buffered beside the window to 16 MiB. */
export const ZSTD_SLICE_BYTES = 512;

/** Decompresses zstd frames as they arrive, in bounded memory. The caller may stop between any two blocks. */
export class ZstdUnpacker {
  private blocks: Uint8Array[] = [];
  private readonly frames: ZstdFrames;
  private readonly zstd = new Decompress((block) => {
    if (block.length > 0) this.blocks.push(block);
  });

  /** @param maxWindowBytes frames with a larger window are refused before memory is allocated for it */
  constructor(maxWindowBytes = MAX_WINDOW_BYTES) {
    this.frames = new ZstdFrames(maxWindowBytes);
  }

  /** Yields what more bytes decompress to. @throws Error if they are not zstd, or need too large a window */
  *push(bytes: Uint8Array): Generator<Uint8Array> {
    for (let start = 0; start < bytes.length; start += ZSTD_SLICE_BYTES) {
      const slice = bytes.subarray(start, start + ZSTD_SLICE_BYTES);
      this.frames.push(slice);
      this.zstd.push(slice, false);
      yield* this.blocks.splice(0);
    }
  }

  /** Yields the rest. @throws Error if the last frame is cut off */
  *end(): Generator<Uint8Array> {
    this.zstd.push(new Uint8Array(0), true);
    yield* this.blocks.splice(0);
  }
}

const FRAME_MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a5;
/** Length of the dictionary's id, by the two bits of the frame header that encode it. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];

/**
 * Follows the frames of zstd (RFC 8878) ahead of the decompressor, so that a frame is refused before memory is allocated for its window: a header of six bytes may ask for gigabytes. Other content is
 * left to the decompressor.
 */
export class ZstdFrames {
  private head: number[] = [];
  private skipBytes = 0;
  private isInFrame = false;
  private checksumBytes = 0;

  constructor(private readonly maxWindowBytes: number) {}

  /** Reads on. @throws Error for a frame whose window is too large */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.skipBytes > 0) {
        const skipped = Math.min(this.skipBytes, bytes.length - at);
        this.skipBytes -= skipped;
        at += skipped;
        continue;
      }
      this.head.push(bytes[at] ?? 0);
      at += 1;
      if (this.isInFrame) this.lookAtBlock();
      else this.lookAtFrame();
    }
  }

  private lookAtFrame(): void {
    const { head } = this;
    if (head.length < 5) return;
    const magic = this.number(0, 4);
    if (magic !== FRAME_MAGIC) {
      if (Math.floor(magic / 16) !== SKIPPABLE_MAGIC) this.skipBytes = Number.POSITIVE_INFINITY;
      else if (head.length === 8) this.next(this.number(4, 4));
      return;
    }
    const flags = head[4] ?? 0;
    const isSingleSegment = (flags & 0x20) !== 0;
    const sizeBytes = flags >> 6 === 0 ? Number(isSingleSegment) : 1 << (flags >> 6);
    const idBytes = DICTIONARY_ID_BYTES[flags & 3] ?? 0;
    const sizeAt = 5 + (isSingleSegment ? 0 : 1) + idBytes;
    if (head.length < sizeAt + sizeBytes) return;
    const windowBytes = isSingleSegment ? this.number(sizeAt, sizeBytes) : windowOf(head[5] ?? 0);
    if (windowBytes > this.maxWindowBytes) {
      const mib = Math.round(windowBytes / 2 ** 20);
      const most = this.maxWindowBytes / 2 ** 20;
      throw new Error(
        `it needs a window of ${mib} MiB; at most ${most} are supported. Pack it without --long and --ultra`,
      );
    }
    this.checksumBytes = (flags & 4) === 0 ? 0 : 4;
    this.isInFrame = true;
    this.next(0);
  }

  private lookAtBlock(): void {
    if (this.head.length < 3) return;
    const header = this.number(0, 3);
    // A block that repeats one byte has a content of one byte, whatever its size.
    const isRepeated = ((header >> 1) & 3) === 1;
    const isLast = (header & 1) === 1;
    this.isInFrame = !isLast;
    this.next((isRepeated ? 1 : header >> 3) + (isLast ? this.checksumBytes : 0));
  }

  private next(skipBytes: number): void {
    this.head = [];
    this.skipBytes = skipBytes;
  }

  /** Reads a little-endian integer of the buffered header. */
  private number(at: number, length: number): number {
    let value = 0;
    for (let index = at + length - 1; index >= at; index--) value = value * 256 + (this.head[index] ?? 0);
    return value;
  }
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}
