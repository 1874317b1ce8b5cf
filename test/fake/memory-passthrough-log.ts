import type {
  PassthroughEntry,
  PassthroughLogReader,
  PassthroughPosition,
} from '../../src/log/passthrough-segments.js';
import type { Signal } from '../../src/record/record-batch.js';

const SEGMENT = 'foreign.jsonl';

/** The telemetry of other services in memory; an entry's offset is its number. */
export class MemoryPassthroughLog implements PassthroughLogReader {
  private readonly entries: PassthroughEntry[] = [];

  append(signal: Signal, body: string): void {
    this.entries.push({ signal, body, next: { segment: SEGMENT, offset: this.entries.length + 1 } });
  }

  async *read(from?: PassthroughPosition): AsyncIterable<PassthroughEntry> {
    yield* this.entries.slice(from?.offset ?? 0);
  }

  async end(): Promise<PassthroughPosition | undefined> {
    return this.entries.at(-1)?.next;
  }
}
