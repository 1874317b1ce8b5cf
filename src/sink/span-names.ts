import type { SpanId } from '../record/ids.js';
import { SpanIdTable } from '../record/span-id-table.js';
import { CELL, type SpanPage } from '../record/span-page.js';

/** Names of the spans that came last: at most this many a trace; a log record of an older span gets its name inferred. */
const MAX_NAMES = 16_384;
/** Bytes of names that are kept, half of it in each generation. */
const MAX_BYTES = 2 * 1024 * 1024;

/** Span names by id, for the log records that come without. */
export class SpanNames {
  private recent = new Names();
  private older = new Names();

  set(id: SpanId, name: string): void {
    const json = Buffer.from(JSON.stringify(name));
    this.makeRoom(json.length);
    const place = this.recent.append(json, 0, json.length);
    if (place !== undefined) this.recent.places.set(id, place);
  }

  /** The name of a page's span, without making a string of it. */
  setFromPage(page: SpanPage, span: number): void {
    const start = page.cell(span, CELL.nameStart);
    const end = page.cell(span, CELL.nameEnd);
    this.makeRoom(end - start);
    const place = this.recent.append(page.lines, start, end);
    if (place !== undefined)
      this.recent.places.setHalves(page.cell(span, CELL.idHigh), page.cell(span, CELL.idLow), place);
  }

  get(id: SpanId): string | undefined {
    return this.recent.get(id) ?? this.older.get(id);
  }

  private makeRoom(byteCount: number): void {
    if (this.recent.count < MAX_NAMES / 2 && this.recent.byteCount + byteCount <= MAX_BYTES / 2) return;
    this.older = this.recent;
    this.recent = new Names();
  }
}

/** Names as JSON, one behind the other, and where in them each id's is. */
class Names {
  readonly places = new SpanIdTable();
  private readonly ends: number[] = [];
  private bytes = Buffer.alloc(0);
  byteCount = 0;

  get count(): number {
    return this.ends.length;
  }

  /** Returns the name's place; `undefined` for one that is too long to keep. */
  append(from: Uint8Array, start: number, end: number): number | undefined {
    const length = end - start;
    if (length > MAX_BYTES / 2) return undefined;
    if (this.byteCount + length > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(4096, 2 * this.bytes.length, this.byteCount + length));
      this.bytes.copy(larger, 0, 0, this.byteCount);
      this.bytes = larger;
    }
    for (let index = start; index < end; index++) this.bytes[this.byteCount++] = from[index] as number;
    return this.ends.push(this.byteCount) - 1;
  }

  get(id: SpanId): string | undefined {
    const place = this.places.get(id);
    if (place === undefined) return undefined;
    return JSON.parse(this.bytes.toString('utf8', this.ends[place - 1] ?? 0, this.ends[place])) as string;
  }
}
