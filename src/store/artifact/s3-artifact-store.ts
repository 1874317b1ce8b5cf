import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { parseArtifactPath } from './artifact-path.js';
import type { Artifact, ArtifactKey, ArtifactStore, ArtifactUsage, ByteRange, OpenArtifact } from './artifact-store.js';
import { createS3Client } from './create-s3-client.js';
import { isMissing, toArtifactError } from './s3-errors.js';
import type { S3Location } from './s3-location.js';

/** An upload's parts: 8 MiB, two under way at a time, so one upload takes 16 MiB of memory at the most. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_A_TIME = 2;
/** Keys that one request may delete. */
const KEYS_PER_DELETE = 1_000;

/**
 * Artifacts in an S3-compatible bucket: `<prefix>artifacts/<run id>/<step index>/<path>`. Loaded where a bucket is configured:
 * its library takes a quarter of a second.
 */
export class S3ArtifactStore implements ArtifactStore {
  private readonly client: S3Client;

  constructor(private readonly location: S3Location) {
    this.client = createS3Client(location);
  }

  async list(runId: number, stepIndex: number): Promise<readonly Artifact[]> {
    const base = this.stepPrefix(runId, stepIndex);
    const artifacts: Artifact[] = [];
    for await (const { Key, Size, LastModified, ETag } of this.objectsBelow(base)) {
      const path = parseArtifactPath(Key.slice(base.length));
      if (path !== undefined) artifacts.push(describe(path, Size, LastModified, ETag));
    }
    return artifacts.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async stat(key: ArtifactKey): Promise<Artifact | undefined> {
    return this.orMissing(async () => {
      const found = await this.client.send(new HeadObjectCommand(this.objectOf(key)));
      return describe(key.path, found.ContentLength, found.LastModified, found.ETag);
    });
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined> {
    return this.orMissing(async () => {
      const part = range === undefined ? {} : { Range: `bytes=${range.from}-${range.to - 1}` };
      const found = await this.client.send(new GetObjectCommand({ ...this.objectOf(key), ...part }));
      const sizeBytes = totalOf(found.ContentRange) ?? found.ContentLength;
      const artifact = describe(key.path, sizeBytes, found.LastModified, found.ETag);
      const content = found.Body instanceof Readable ? found.Body : Readable.from([]);
      return { artifact, content };
    });
  }

  async put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void> {
    const source = new WatchedSource(content);
    const params = { ...this.objectOf(key), Body: Readable.from(source.bytes()) };
    // Parts of an upload that fails are taken back; a bucket should have a rule for those whose process died.
    const upload = new Upload({ client: this.client, params, partSize: PART_BYTES, queueSize: PARTS_AT_A_TIME });
    try {
      await upload.done();
    } catch (error) {
      throw source.failure === undefined ? toArtifactError(error, this.location) : source.failure.error;
    }
  }

  async remove(key: ArtifactKey): Promise<boolean> {
    if ((await this.stat(key)) === undefined) return false;
    await this.guard(() => this.client.send(new DeleteObjectCommand(this.objectOf(key))));
    return true;
  }

  async removeRun(runId: number): Promise<ArtifactUsage> {
    let count = 0;
    let sizeBytes = 0;
    let batch: { Key: string }[] = [];
    const removeBatch = async () => {
      if (batch.length > 0) await this.removeObjects(batch);
      batch = [];
    };
    for await (const { Key, Size } of this.objectsBelow(`${this.rootPrefix}${runId}/`)) {
      count += 1;
      sizeBytes += Size ?? 0;
      batch.push({ Key });
      if (batch.length === KEYS_PER_DELETE) await removeBatch();
    }
    await removeBatch();
    return { count, sizeBytes };
  }

  async usage(runId?: number): Promise<ArtifactUsage> {
    let count = 0;
    let sizeBytes = 0;
    for await (const { Size } of this.objectsBelow(
      runId === undefined ? this.rootPrefix : `${this.rootPrefix}${runId}/`,
    )) {
      count += 1;
      sizeBytes += Size ?? 0;
    }
    return { count, sizeBytes };
  }

  /** Closes its connections; nothing may be called afterwards. */
  close(): void {
    this.client.destroy();
  }

  private async *objectsBelow(prefix: string) {
    const query = { Bucket: this.location.bucket, Prefix: prefix };
    const pages = paginateListObjectsV2({ client: this.client }, query)[Symbol.asyncIterator]();
    for (;;) {
      const page = await this.guard(() => pages.next());
      if (page.done === true) return;
      for (const object of page.value.Contents ?? []) {
        if (object.Key !== undefined) yield { ...object, Key: object.Key };
      }
    }
  }

  private async removeObjects(objects: { Key: string }[]): Promise<void> {
    const command = new DeleteObjectsCommand({
      Bucket: this.location.bucket,
      Delete: { Objects: objects, Quiet: true },
    });
    const { Errors: [failed] = [] } = await this.guard(() => this.client.send(command));
    if (failed !== undefined) {
      throw toArtifactError(new Error(`${failed.Key}: ${failed.Code} ${failed.Message}`), this.location);
    }
  }

  private objectOf({ runId, stepIndex, path }: ArtifactKey) {
    return { Bucket: this.location.bucket, Key: this.stepPrefix(runId, stepIndex) + path };
  }

  private stepPrefix(runId: number, stepIndex: number): string {
    return `${this.rootPrefix}${runId}/${stepIndex}/`;
  }

  private get rootPrefix(): string {
    return `${this.location.prefix}artifacts/`;
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

/** Tells what went wrong with the source of an upload from what went wrong with the upload. */
class WatchedSource {
  failure: { readonly error: unknown } | undefined;

  constructor(private readonly content: AsyncIterable<Uint8Array>) {}

  async *bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.content;
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }
}

function describe(
  path: Artifact['path'],
  sizeBytes: number | undefined,
  modified: Date | undefined,
  etag: string | undefined,
): Artifact {
  // Lists have milliseconds, answers about one object do not.
  const modifiedUnixMs = Math.floor((modified?.getTime() ?? 0) / 1_000) * 1_000;
  return { path, sizeBytes: sizeBytes ?? 0, modifiedUnixMs, etag: etag ?? `"${sizeBytes}-${modifiedUnixMs}"` };
}

/** The size of the whole, of a `Content-Range` such as `bytes 0-9/1234`. */
function totalOf(contentRange: string | undefined): number | undefined {
  const digits = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
