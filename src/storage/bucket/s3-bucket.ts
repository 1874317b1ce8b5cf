import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { state as sdkState } from '@aws-sdk/core/client';
import { Upload } from '@aws-sdk/lib-storage';
import { errorCode, reasonOf } from '../../core/errors.js';
import { slices } from '../../core/lists.js';
import { ArtifactError, type ArtifactErrorCode } from '../artifacts.js';
import type { ObjectStore, S3Location } from './object-store.js';

/** Parts of an upload: 8 MiB, two at a time, so one upload takes at most 16 MiB of memory. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_A_TIME = 2;
/** Keys that one request may delete. */
const KEYS_PER_DELETE = 1_000;

/** Bytes of an object, `to` not among them. */
export interface ObjectRange {
  readonly from: number;
  readonly to: number;
}

/** Metadata of an object; lists have times in milliseconds, responses about one object in seconds. */
export interface ObjectFacts {
  /** Of the whole object. */
  readonly sizeBytes: number;
  readonly modified: Date | undefined;
  readonly etag: string | undefined;
}

/** An object as lists have it. */
interface ListedObject extends ObjectFacts {
  readonly key: string;
}

/**
 * An S3-compatible bucket, below a prefix: keys are without it. Every failure is an `ArtifactError` with a message for the
 * operator. Loaded only if a bucket is configured: its library takes a quarter of a second.
 */
export class S3Bucket {
  private readonly client: S3Client;

  /** @param silenceMs how long a connection may be silent; default 60,000 */
  constructor(
    private readonly location: S3Location,
    silenceMs?: number,
  ) {
    this.client = createS3Client(location, silenceMs);
  }

  /** Writes an object in one request. */
  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.guard(() => this.client.send(new PutObjectCommand({ ...this.objectOf(key), Body: bytes })));
  }

  /** Writes an object of any size in parts; those of one that fails are taken back. */
  async upload(key: string, content: Readable): Promise<void> {
    const params = { ...this.objectOf(key), Body: content };
    // A bucket should have a rule for parts of uploads whose process died.
    const upload = new Upload({ client: this.client, params, partSize: PART_BYTES, queueSize: PARTS_AT_A_TIME });
    await this.guard(() => upload.done());
  }

  /** Metadata of an object; `undefined` if it does not exist. */
  head(key: string): Promise<ObjectFacts | undefined> {
    return this.orMissing(async () => {
      const found = await this.client.send(new HeadObjectCommand(this.objectOf(key)));
      return { sizeBytes: found.ContentLength ?? 0, modified: found.LastModified, etag: found.ETag };
    });
  }

  /** Returns an object as a stream: read it to its end, or destroy it. `undefined` if it does not exist. */
  open(key: string, range?: ObjectRange): Promise<(ObjectFacts & { readonly content: Readable }) | undefined> {
    return this.orMissing(async () => {
      const { Body, ContentRange, ContentLength = 0, LastModified: modified, ETag: etag } = await this.ask(key, range);
      const content = Body instanceof Readable ? Body : Readable.from([]);
      return { sizeBytes: totalOf(ContentRange) ?? ContentLength, modified, etag, content };
    });
  }

  /** Returns a part of an object, or all of it; `undefined` if it does not exist. */
  read(key: string, range?: ObjectRange): Promise<Buffer | undefined> {
    return this.orMissing(async () =>
      Buffer.from((await (await this.ask(key, range)).Body?.transformToByteArray()) ?? []),
    );
  }

  /** Removes objects, those that are there; any number of them. */
  async remove(keys: readonly string[]): Promise<void> {
    for (const some of slices(keys, KEYS_PER_DELETE)) {
      const Delete = { Objects: some.map((key) => ({ Key: this.location.prefix + key })), Quiet: true };
      const command = new DeleteObjectsCommand({ Bucket: this.location.bucket, Delete });
      const { Errors: [failed] = [] } = await this.guard(() => this.client.send(command));
      if (failed !== undefined && failed.Code !== 'NoSuchKey') {
        throw toArtifactError(new Error(`${failed.Key}: ${failed.Code} ${failed.Message}`), this.location);
      }
    }
  }

  /** Lists all objects whose keys begin so, in the keys' order. */
  async *list(prefix: string): AsyncGenerator<ListedObject> {
    for await (const { objects } of this.pages(prefix)) yield* objects;
  }

  /** Lists a folder without what its folders have, each in the keys' order. @param prefix ends with `/`, as folders do not */
  async listFolder(
    prefix: string,
  ): Promise<{ readonly folders: readonly string[]; readonly objects: readonly ListedObject[] }> {
    const found: { folders: string[]; objects: ListedObject[] } = { folders: [], objects: [] };
    for await (const { folders, objects } of this.pages(prefix, '/')) {
      found.folders.push(...folders.map((key) => key.slice(0, -1)));
      found.objects.push(...objects);
    }
    return found;
  }

  private async *pages(prefix: string, delimiter?: string) {
    const { bucket, prefix: root } = this.location;
    const query = { Bucket: bucket, Prefix: root + prefix, Delimiter: delimiter };
    const pages = paginateListObjectsV2({ client: this.client }, query)[Symbol.asyncIterator]();
    for (;;) {
      const page = await this.guard(() => pages.next());
      if (page.done === true) return;
      const { CommonPrefixes = [], Contents = [] } = page.value;
      yield {
        folders: CommonPrefixes.flatMap(({ Prefix }) => Prefix?.slice(root.length) ?? []),
        objects: Contents.flatMap(({ Key, Size = 0, LastModified: modified, ETag: etag }): readonly ListedObject[] =>
          Key === undefined ? [] : [{ key: Key.slice(root.length), sizeBytes: Size, modified, etag }],
        ),
      };
    }
  }

  /** Closes its connections; nothing may be called afterwards. */
  close(): void {
    this.client.destroy();
  }

  private ask(key: string, range: ObjectRange | undefined): Promise<GetObjectCommandOutput> {
    const part = range === undefined ? {} : { Range: `bytes=${range.from}-${range.to - 1}` };
    return this.client.send(new GetObjectCommand({ ...this.objectOf(key), ...part }));
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

/** Returns the size of the whole, of a `Content-Range` such as `bytes 0-9/1234`. */
function totalOf(contentRange: string | undefined): number | undefined {
  const digits = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** How often a request is made. */
const MAX_ATTEMPTS = 4;
/** How long a connection may take, and how long it may be silent, in milliseconds. */
const CONNECT_MS = 5_000;
const SILENCE_MS = 60_000;

/** Returns a client of the server that has a bucket. @param silenceMs how long a connection may be silent; default 60,000 */
export function createS3Client(
  { endpoint, region, isPathStyle, credentials }: S3Location,
  silenceMs = SILENCE_MS,
): S3Client {
  // Else it writes to standard error that its later versions will not run on Node 20; there, standard error is a command's.
  sdkState.warningEmitted = true;
  return new S3Client({
    region,
    forcePathStyle: isPathStyle,
    ...(endpoint === null ? {} : { endpoint }),
    ...(credentials === null ? {} : { credentials }),
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: silenceMs },
    // Many servers do not support checksums beyond those that S3 requires.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

/** Returns whether a response means that the object does not exist. */
export function isMissing(error: unknown): boolean {
  // A response without a body has no error name.
  return error instanceof S3ServiceException && statusOf(error) === 404 && error.name !== 'NoSuchBucket';
}

/** Returns an error of S3, or of the connection, as a message for the operator. */
export function toArtifactError(cause: unknown, { bucket, endpoint }: S3Location): ArtifactError {
  const where = `the bucket ${bucket}${endpoint === null ? '' : ` at ${endpoint}`}`;
  const { code, text } = judge(cause);
  return new ArtifactError(code, `${where} ${text}`, { cause });
}

function judge(cause: unknown): { code: ArtifactErrorCode; text: string } {
  if (!(cause instanceof S3ServiceException)) return { code: 'unavailable', text: notReached(cause) };
  const { name } = cause;
  const status = statusOf(cause);
  if (FULL.has(name) || status === 507) return { code: 'full', text: `is full (${name}): free some space in it` };
  if (name === 'EntityTooLarge') return { code: 'tooLarge', text: `takes no object as large as this (${name})` };
  if (name === 'NoSuchBucket') return { code: 'refused', text: 'does not exist: create it, or correct --artifacts' };
  if (status === 301)
    return { code: 'refused', text: `is in another region (${name}): set its region: --artifacts s3://…?region=…` };
  if (status === 401 || status === 403) {
    const advice = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must belong to a user who may read and write it';
    return { code: 'refused', text: `does not let us in (${name}): ${advice}` };
  }
  return { code: 'unavailable', text: `failed (${[status, name].filter(Boolean).join(' ')}): ${cause.message}` };
}

function notReached(cause: unknown): string {
  if (cause instanceof Error && cause.name === 'CredentialsProviderError') {
    return 'needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  }
  // A host with several addresses that all fail gives an error without a message.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  const reason = errorCode(first) ?? reasonOf(first);
  return `cannot be reached (${reason}): check the endpoint of --artifacts, and the network`;
}

/** Names that servers give a quota or a disk that is used up. */
const FULL: ReadonlySet<string> = new Set(['QuotaExceeded', 'XMinioStorageFull', 'XMinioAdminBucketQuotaExceeded']);

function statusOf(error: S3ServiceException): number | undefined {
  return error.$metadata.httpStatusCode;
}

/** A file up to this size is one request. */
const SMALL_BYTES = 8 * 1024 * 1024;
/** Senders wait for these writes: a request without a response is repeated after this long, in milliseconds. */
const OBJECT_SILENCE_MS = 15_000;

/** Objects in an S3-compatible bucket. */
export class S3ObjectStore implements ObjectStore {
  private readonly bucket: S3Bucket;

  constructor(location: S3Location) {
    this.bucket = new S3Bucket(location, OBJECT_SILENCE_MS);
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
