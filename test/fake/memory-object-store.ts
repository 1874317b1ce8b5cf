import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { ObjectStore } from '../../src/storage/bucket/object-store.js';

/** A bucket in memory. */
export class MemoryObjectStore implements ObjectStore {
  readonly objects = new Map<string, Buffer>();
  /** What every upload fails with, while it is set. */
  failure: Error | undefined;

  async put(key: string, bytes: Uint8Array): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.objects.set(key, Buffer.from(bytes));
  }

  async putFile(key: string, path: string, sizeBytes: number): Promise<void> {
    await this.put(key, readFileSync(path).subarray(0, sizeBytes));
  }

  async get(key: string, fromByte = 0, toByte?: number): Promise<Buffer | undefined> {
    return this.objects.get(key)?.subarray(fromByte, toByte);
  }

  async open(key: string): Promise<Readable | undefined> {
    const bytes = this.objects.get(key);
    return bytes && Readable.from(bytes.length === 0 ? [] : [bytes]);
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.objects.delete(key);
  }

  async list(prefix: string): Promise<readonly string[]> {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
  }
}
