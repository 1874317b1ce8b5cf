import type { ObjectStore } from '../storage/bucket/object-store.js';

/** What objects may take in memory, in bytes. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Of a larger object only what is asked for is read. */
const MAX_WHOLE_BYTES = 8 * 1024 * 1024;

/**
 * Objects of the journal, by ranges. An object contains parts of many traces, which are read shortly after each other: so it is
 * read whole and kept for a moment, those that were just written included.
 */
export class JournalObjects {
  private readonly held = new Map<string, Buffer>();
  private readonly reading = new Map<string, Promise<Buffer>>();
  private heldBytes = 0;

  constructor(private readonly store: Pick<ObjectStore, 'get'>) {}

  /** @throws ArtifactError; Error where the object is not there */
  async read(key: string, fromByte: number, toByte: number): Promise<Buffer> {
    const held = this.held.get(key);
    if (held !== undefined) return held.subarray(fromByte, toByte);
    if (toByte > MAX_WHOLE_BYTES) return required(key, await this.store.get(key, fromByte, toByte));
    let reading = this.reading.get(key);
    if (reading === undefined) {
      reading = this.fetch(key).finally(() => this.reading.delete(key));
      this.reading.set(key, reading);
    }
    return (await reading).subarray(fromByte, toByte);
  }

  /** An object that is likely to be asked for. */
  keep(key: string, bytes: Buffer): void {
    if (bytes.length > MAX_WHOLE_BYTES || this.held.has(key)) return;
    this.held.set(key, bytes);
    this.heldBytes += bytes.length;
    for (const [oldest, { length }] of this.held) {
      if (this.heldBytes <= MAX_HELD_BYTES) return;
      this.held.delete(oldest);
      this.heldBytes -= length;
    }
  }

  private async fetch(key: string): Promise<Buffer> {
    const bytes = required(key, await this.store.get(key));
    this.keep(key, bytes);
    return bytes;
  }
}

function required(key: string, bytes: Buffer | undefined): Buffer {
  if (bytes === undefined) throw new Error(`the object ${key} of the journal is not in the bucket`);
  return bytes;
}
