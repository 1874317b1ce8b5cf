import type { SpanId } from '../record/ids.js';

/** Names of the spans that came last: at most this many a trace; a log record of an older span gets its name inferred. */
const MAX_NAMES = 16_384;

/** Span names by id, for the log records that come without. */
export class SpanNames {
  private recent = new Map<SpanId, string>();
  private older = new Map<SpanId, string>();

  set(id: SpanId, name: string): void {
    if (this.recent.size >= MAX_NAMES / 2) {
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(id, name);
  }

  get(id: SpanId): string | undefined {
    return this.recent.get(id) ?? this.older.get(id);
  }
}
