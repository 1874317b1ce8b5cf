import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { ObjectStore } from './object-store.js';
import { S3Bucket } from './s3-bucket.js';
import type { S3Location } from './s3-location.js';

/** A file up to this size is one request. */
const SMALL_BYTES = 8 * 1024 * 1024;
/** Senders wait for these writes: a request without a response is repeated after this long, in milliseconds. */
const SILENCE_MS = 15_000;

/** Objects in an S3-compatible bucket. */
export class S3ObjectStore implements ObjectStore {
  private readonly bucket: S3Bucket;

  constructor(location: S3Location) {
    this.bucket = new S3Bucket(location, SILENCE_MS);
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.bucket.put(key, bytes);
  }

  async putFile(key: string, path: string, sizeBytes: number): Promise<void> {
    if (sizeBytes === 0) return await this.put(key, new Uint8Array());
    const content = createReadStream(path, { end: sizeBytes - 1 });
    if (sizeBytes <= SMALL_BYTES) return await this.put(key, Buffer.concat(await content.toArray()));
    try {
      await this.bucket.upload(key, content);
    } finally {
      content.destroy();
    }
  }

  get(key: string, fromByte?: number, toByte?: number): Promise<Buffer | undefined> {
    const range = fromByte === undefined || toByte === undefined ? undefined : { from: fromByte, to: toByte };
    return this.bucket.read(key, range);
  }

  async open(key: string): Promise<Readable | undefined> {
    return (await this.bucket.open(key))?.content;
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.bucket.remove(keys);
  }

  async list(prefix: string): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const { key } of this.bucket.list(prefix)) keys.push(key);
    return keys;
  }

  /** Closes its connections; nothing may be called afterwards. */
  close(): void {
    this.bucket.close();
  }
}
