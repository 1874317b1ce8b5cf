import type { SpanId } from '../record/ids.js';
import { ownText } from '../record/own-text.js';
import { SpanIdTable } from '../record/span-id-table.js';

/** Names of the spans that came last: at most this many a trace; a log record of an older span gets its name inferred. */
const MAX_NAMES = 16_384;

/** Span names by id, for the log records that come without. */
export class SpanNames {
  private recent = new Names();
  private older = new Names();

  set(id: SpanId, name: string): void {
    if (this.recent.count >= MAX_NAMES / 2) {
      this.older = this.recent;
      this.recent = new Names();
    }
    this.recent.set(id, name);
  }

  get(id: SpanId): string | undefined {
    return this.recent.get(id) ?? this.older.get(id);
  }
}

/** Names in a list, and where in it each id's is. */
class Names {
  private readonly places = new SpanIdTable();
  private readonly names: string[] = [];

  get count(): number {
    return this.names.length;
  }

  set(id: SpanId, name: string): void {
    const place = this.places.get(id);
    if (place !== undefined && this.names[place] === name) return;
    this.places.set(id, this.names.length);
    this.names.push(ownText(name));
  }

  get(id: SpanId): string | undefined {
    const place = this.places.get(id);
    return place === undefined ? undefined : this.names[place];
  }
}
