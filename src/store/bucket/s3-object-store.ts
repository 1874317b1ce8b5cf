import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { createS3Client } from '../artifact/create-s3-client.js';
import { isMissing, toArtifactError } from '../artifact/s3-errors.js';
import type { S3Location } from '../artifact/s3-location.js';
import type { ObjectStore } from './object-store.js';

/** An upload's parts: 8 MiB, two under way at a time, so one upload takes 16 MiB of memory at the most. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_A_TIME = 2;
/** A file up to this size is one request. */
const SMALL_BYTES = 8 * 1024 * 1024;
/** Keys that one request may delete. */
const KEYS_PER_DELETE = 1_000;
/** Senders wait for what is written here: a server that says nothing for so long is asked again, in milliseconds. */
const SILENCE_MS = 15_000;

/** Objects in an S3-compatible bucket. Loaded where it is configured: its library takes a quarter of a second. */
export class S3ObjectStore implements ObjectStore {
  private readonly client: S3Client;

  constructor(private readonly location: S3Location) {
    this.client = createS3Client(location, SILENCE_MS);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.guard(() => this.client.send(new PutObjectCommand({ ...this.objectOf(key), Body: bytes })));
  }

  async putFile(key: string, path: string, sizeBytes: number): Promise<void> {
    if (sizeBytes === 0) return await this.put(key, new Uint8Array());
    const content = createReadStream(path, { end: sizeBytes - 1 });
    if (sizeBytes <= SMALL_BYTES) return await this.put(key, Buffer.concat(await content.toArray()));
    const params = { ...this.objectOf(key), Body: content };
    const upload = new Upload({ client: this.client, params, partSize: PART_BYTES, queueSize: PARTS_AT_A_TIME });
    try {
      await this.guard(() => upload.done());
    } finally {
      content.destroy();
    }
  }

  async get(key: string, fromByte?: number, toByte?: number): Promise<Buffer | undefined> {
    const range = fromByte === undefined || toByte === undefined ? {} : { Range: `bytes=${fromByte}-${toByte - 1}` };
    return await this.orMissing(async () => {
      const { Body } = await this.client.send(new GetObjectCommand({ ...this.objectOf(key), ...range }));
      return Buffer.from((await Body?.transformToByteArray()) ?? []);
    });
  }

  async open(key: string): Promise<Readable | undefined> {
    return await this.orMissing(async () => {
      const { Body } = await this.client.send(new GetObjectCommand(this.objectOf(key)));
      return Body instanceof Readable ? Body : Readable.from([]);
    });
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (let from = 0; from < keys.length; from += KEYS_PER_DELETE) {
      const Objects = keys.slice(from, from + KEYS_PER_DELETE).map((key) => ({ Key: this.location.prefix + key }));
      const command = new DeleteObjectsCommand({ Bucket: this.location.bucket, Delete: { Objects, Quiet: true } });
      const { Errors: [failed] = [] } = await this.guard(() => this.client.send(command));
      if (failed !== undefined && failed.Code !== 'NoSuchKey') {
        throw toArtifactError(new Error(`${failed.Key}: ${failed.Code} ${failed.Message}`), this.location);
      }
    }
  }

  async list(prefix: string): Promise<readonly string[]> {
    const { bucket, prefix: root } = this.location;
    return await this.guard(async () => {
      const keys: string[] = [];
      const query = { Bucket: bucket, Prefix: root + prefix };
      for await (const { Contents = [] } of paginateListObjectsV2({ client: this.client }, query)) {
        for (const { Key } of Contents) if (Key !== undefined) keys.push(Key.slice(root.length));
      }
      return keys;
    });
  }

  /** Closes its connections; nothing may be called afterwards. */
  close(): void {
    this.client.destroy();
  }

  private objectOf(key: string) {
    return { Bucket: this.location.bucket, Key: this.location.prefix + key };
  }

  private async orMissing<T>(action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw toArtifactError(error, this.location);
    }
  }

  private async guard<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      throw toArtifactError(error, this.location);
    }
  }
}
