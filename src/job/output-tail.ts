/** Keeps the end of what a command writes: the last `maxBytes`, whatever came before. */
export class OutputTail {
  private readonly chunks: Buffer[] = [];
  private keptBytes = 0;
  private totalBytes = 0;

  constructor(private readonly maxBytes: number) {}

  add(chunk: Buffer): void {
    this.totalBytes += chunk.byteLength;
    // A view of a larger chunk would keep all of it.
    const kept = chunk.byteLength > this.maxBytes ? Buffer.from(chunk.subarray(-this.maxBytes)) : chunk;
    this.chunks.push(kept);
    this.keptBytes += kept.byteLength;
    for (;;) {
      const first = this.chunks[0];
      if (first === undefined || this.keptBytes - first.byteLength < this.maxBytes) return;
      this.chunks.shift();
      this.keptBytes -= first.byteLength;
    }
  }

  /** What is kept, from the beginning of a line on where something before it is gone. */
  get text(): string {
    const kept = Buffer.concat(this.chunks).subarray(-this.maxBytes);
    if (kept.byteLength === this.totalBytes) return kept.toString('utf8');
    const lineStart = kept.indexOf(LINE_FEED) + 1;
    return kept.subarray(lineStart === kept.byteLength ? 0 : lineStart).toString('utf8');
  }

  /** Bytes of what came before it. */
  get droppedBytes(): number {
    return this.totalBytes - Math.min(this.keptBytes, this.maxBytes);
  }
}

const LINE_FEED = 0x0a;
