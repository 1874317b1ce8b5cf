import type { ForeignEntry, ForeignLogReader, ForeignPlace } from '../sink/foreign-log.js';

/** Reads the telemetry of other services up to where it is known to be durable, which only who writes it can say. */
export class BoundedForeignReader implements ForeignLogReader {
  private known: ForeignPlace | undefined;

  constructor(private readonly reader: Pick<ForeignLogReader, 'read'>) {}

  /** Everything before this place is durable. */
  moveEnd(end: ForeignPlace): void {
    if (this.known === undefined || !isBefore(end, this.known)) this.known = end;
  }

  async *read(from?: ForeignPlace): AsyncIterable<ForeignEntry> {
    for await (const entry of this.reader.read(from)) {
      if (this.known === undefined || isBefore(this.known, entry.next)) return;
      yield entry;
    }
  }

  async end(): Promise<ForeignPlace | undefined> {
    return this.known;
  }
}

function isBefore(a: ForeignPlace, b: ForeignPlace): boolean {
  return a.segment === b.segment ? a.offset < b.offset : a.segment < b.segment;
}
