import type { Resource } from '../../record/resource.js';
import type { SpanEnd } from '../../record/telemetry-record.js';
import type { LinePlace } from '../lines/line-blocks.js';

interface Held {
  readonly anchorOffset: number;
  readonly resource: Resource;
  readonly endSeconds: number;
  readonly endNanos: number;
}

/** A span's end that waits for late events: its record, or (in half the memory) its line. */
export type HeldSpan =
  | (Held & { readonly record: SpanEnd })
  | (Held & { readonly record?: undefined; readonly line: LinePlace; readonly uniqueId: string | undefined });

/** Ended spans in the order of the log, first in, first out. */
export class HeldSpans {
  private spans: (HeldSpan | undefined)[] = [];
  /** Those before it are gone. */
  private from = 0;

  get count(): number {
    return this.spans.length - this.from;
  }

  get oldest(): HeldSpan | undefined {
    return this.spans[this.from];
  }

  add(span: HeldSpan): void {
    this.spans.push(span);
  }

  takeOldest(): HeldSpan | undefined {
    const oldest = this.spans[this.from];
    if (oldest === undefined) return undefined;
    // Let go at once: it keeps a block of lines.
    this.spans[this.from++] = undefined;
    if (this.from > COMPACT_AFTER && this.from * 2 > this.spans.length) {
      this.spans = this.spans.slice(this.from);
      this.from = 0;
    }
    return oldest;
  }
}

/** Handed-out spans that may stay in the list before it is shortened. */
const COMPACT_AFTER = 1024;
