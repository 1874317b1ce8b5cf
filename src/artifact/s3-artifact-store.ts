import { Readable } from 'node:stream';
import {
  type Artifact,
  type ArtifactFolder,
  type ArtifactKey,
  type ArtifactPath,
  type ArtifactStore,
  type ArtifactUsage,
  type ByteRange,
  type OpenArtifact,
  parseArtifactPath,
} from '../storage/artifacts.js';
import type { S3Location } from '../storage/bucket/object-store.js';
import { type ObjectFacts, S3Bucket } from '../storage/bucket/s3-bucket.js';

/** Where artifacts are within the bucket, below its prefix. */
const ROOT = 'artifacts/';

/** Artifacts in an S3-compatible bucket: `<prefix>artifacts/<run id>/<step index>/<path>`. */
export class S3ArtifactStore implements ArtifactStore {
  private readonly bucket: S3Bucket;

  constructor(location: S3Location) {
    this.bucket = new S3Bucket(location);
  }

  async list(runId: number, stepIndex: number): Promise<readonly Artifact[]> {
    const base = stepPrefix(runId, stepIndex);
    const artifacts: Artifact[] = [];
    for await (const { key, ...facts } of this.bucket.list(base)) {
      const path = parseArtifactPath(key.slice(base.length));
      if (path !== undefined) artifacts.push(describe(path, facts));
    }
    return artifacts.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async listFolder(runId: number, stepIndex: number, folder: ArtifactPath | ''): Promise<ArtifactFolder> {
    const base = stepPrefix(runId, stepIndex);
    const found = await this.bucket.listFolder(folder === '' ? base : `${base}${folder}/`);
    const pathOf = (key: string) => parseArtifactPath(key.slice(base.length));
    return {
      folders: found.folders.flatMap((key) => pathOf(key) ?? []),
      files: found.objects.flatMap(({ key, ...facts }) => {
        const path = pathOf(key);
        return path === undefined ? [] : [describe(path, facts)];
      }),
    };
  }

  async stat(key: ArtifactKey): Promise<Artifact | undefined> {
    const found = await this.bucket.head(keyOf(key));
    return found && describe(key.path, found);
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined> {
    const found = await this.bucket.open(keyOf(key), range);
    return found && { artifact: describe(key.path, found), content: found.content };
  }

  async put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void> {
    const source = new WatchedSource(content);
    try {
      await this.bucket.upload(keyOf(key), Readable.from(source.bytes()));
    } catch (error) {
      throw source.failure === undefined ? error : source.failure.error;
    }
  }

  async remove(key: ArtifactKey): Promise<boolean> {
    if ((await this.stat(key)) === undefined) return false;
    await this.bucket.remove([keyOf(key)]);
    return true;
  }

  async removeRun(runId: number): Promise<ArtifactUsage> {
    const keys: string[] = [];
    let sizeBytes = 0;
    for await (const object of this.bucket.list(runPrefix(runId))) {
      keys.push(object.key);
      sizeBytes += object.sizeBytes;
    }
    await this.bucket.remove(keys);
    return { count: keys.length, sizeBytes };
  }

  async usage(runId?: number): Promise<ArtifactUsage> {
    let count = 0;
    let sizeBytes = 0;
    for await (const object of this.bucket.list(runId === undefined ? ROOT : runPrefix(runId))) {
      count += 1;
      sizeBytes += object.sizeBytes;
    }
    return { count, sizeBytes };
  }

  /** Closes its connections; nothing may be called afterwards. */
  close(): void {
    this.bucket.close();
  }
}

function keyOf({ runId, stepIndex, path }: ArtifactKey): string {
  return stepPrefix(runId, stepIndex) + path;
}

function stepPrefix(runId: number, stepIndex: number): string {
  return `${runPrefix(runId)}${stepIndex}/`;
}

function runPrefix(runId: number): string {
  return `${ROOT}${runId}/`;
}

/** Distinguishes errors of an upload's source from errors of the upload. */
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

function describe(path: Artifact['path'], { sizeBytes, modified, etag }: ObjectFacts): Artifact {
  // Lists have milliseconds, answers about one object do not.
  const modifiedUnixMs = Math.floor((modified?.getTime() ?? 0) / 1_000) * 1_000;
  return { path, sizeBytes, modifiedUnixMs, etag: etag ?? `"${sizeBytes}-${modifiedUnixMs}"` };
}
