import type { ObjectStore } from '../storage/bucket/object-store.js';

/** Maximum memory of cached objects, in bytes. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;
/** Of a larger object only the requested range is read. */
const MAX_WHOLE_BYTES = 8 * 1024 * 1024;

/**
 * Objects of the journal, by ranges. An object contains parts of many traces, which are read shortly after each other: so it is
 * read as a whole and cached for a short time, just written ones included.
 */
export class JournalObjects {
  private readonly cached = new Map<string, Buffer>();
  private readonly reading = new Map<string, Promise<Buffer>>();
  private cachedBytes = 0;

  constructor(private readonly store: Pick<ObjectStore, 'get'>) {}

  /** @throws ArtifactError; Error where the object is not there */
  async read(key: string, fromByte: number, toByte: number): Promise<Buffer> {
    const cached = this.cached.get(key);
    if (cached !== undefined) return cached.subarray(fromByte, toByte);
    if (toByte > MAX_WHOLE_BYTES) return required(key, await this.store.get(key, fromByte, toByte));
    let reading = this.reading.get(key);
    if (reading === undefined) {
      reading = this.fetch(key).finally(() => this.reading.delete(key));
      this.reading.set(key, reading);
    }
    return (await reading).subarray(fromByte, toByte);
  }

  /** Caches an object that is likely to be read. */
  cache(key: string, bytes: Buffer): void {
    if (bytes.length > MAX_WHOLE_BYTES || this.cached.has(key)) return;
    this.cached.set(key, bytes);
    this.cachedBytes += bytes.length;
    for (const [oldest, { length }] of this.cached) {
      if (this.cachedBytes <= MAX_CACHED_BYTES) return;
      this.cached.delete(oldest);
      this.cachedBytes -= length;
    }
  }

  private async fetch(key: string): Promise<Buffer> {
    const bytes = required(key, await this.store.get(key));
    this.cache(key, bytes);
    return bytes;
  }
}

function required(key: string, bytes: Buffer | undefined): Buffer {
  if (bytes === undefined) throw new Error(`the object ${key} of the journal is not in the bucket`);
  return bytes;
}
