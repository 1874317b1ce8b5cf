import type { ForeignEntry, ForeignLogReader, ForeignPosition } from '../../src/log/foreign-segments.js';
import type { Signal } from '../../src/record/record-batch.js';

const SEGMENT = 'foreign.jsonl';

/** The telemetry of other services in memory; an entry's offset is its number. */
export class MemoryForeignLog implements ForeignLogReader {
  private readonly entries: ForeignEntry[] = [];

  append(signal: Signal, body: string): void {
    this.entries.push({ signal, body, next: { segment: SEGMENT, offset: this.entries.length + 1 } });
  }

  async *read(from?: ForeignPosition): AsyncIterable<ForeignEntry> {
    yield* this.entries.slice(from?.offset ?? 0);
  }

  async end(): Promise<ForeignPosition | undefined> {
    return this.entries.at(-1)?.next;
  }
}
