import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../core/clock.js';
import type { Component } from '../core/lifecycle.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../storage/journal-store.js';
import type { TraceCopies } from './removed-copies.js';

/** What copies of files are made with. */
export interface FileCopiesDeps {
  readonly bucket: Pick<ObjectStore, 'open'>;
  readonly traces: Pick<JournalStore, 'filesOf' | 'latestFiles'>;
  /** Copies are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  readonly clock: Clock;
  /** What copies may take on disk, in bytes; default 4 GiB. */
  readonly maxBytes?: number;
}

/** A copy of a file. */
export interface FileCopy {
  readonly path: string;
  /** An HTTP entity tag with its quotes: the same in every process. */
  readonly etag: string;
}

/** Copies of files of many runs, side by side. */
export interface FilesOfRuns {
  /** Folder of the runs, absolute. */
  readonly folder: string;
  /** `<trace id>/<name>` */
  readonly paths: readonly string[];
  /** Runs whose files there is no room for: those that were written to longest ago. */
  readonly leftOutCount: number;
}

const DEFAULT_MAX_BYTES = 4 * 1024 ** 3;
/** A copy that was requested this recently stays: it may be being read. In milliseconds. */
const STAYS_MS = 120_000;
/** Files that are fetched side by side. */
const AT_ONCE = 8;

/** A copy, or one that is being made. */
interface CachedFile {
  readonly traceId: TraceId;
  readonly objectKey: string;
  readonly sizeBytes: number;
  readonly made: Promise<void>;
  usedMs: number;
}

/** Files of runs on this machine, copied from the bucket when they are asked for, and kept as long as there is room. */
export class FileCopies implements TraceCopies, Component {
  readonly name = 'copies of files of runs';
  /** By `<trace id>/<name>`, the one used longest ago first. */
  private readonly cached = new Map<string, CachedFile>();
  private cachedBytes = 0;

  constructor(private readonly deps: FileCopiesDeps) {}

  async start(): Promise<void> {
    await rm(this.runsFolder, { recursive: true, force: true });
  }

  async shutdown(): Promise<void> {}

  /** A file of a trace; `undefined` where there is none. @throws ArtifactError, StoreError, Error */
  async find(traceId: TraceId, name: string): Promise<FileCopy | undefined> {
    const file = (await this.deps.traces.filesOf(traceId)).find((one) => one.name === name);
    if (file === undefined) return undefined;
    await this.bring(traceId, file);
    await this.makeRoom();
    const etag = `"${createHash('sha1').update(file.objectKey).digest('hex')}"`;
    return { path: join(this.runsFolder, traceId, name), etag };
  }

  /**
   * Files of runs, those that were written to last first, as far as there is room. A file that is removed meanwhile is passed over.
   * @param isWanted by a file's name @throws ArtifactError, StoreError, Error
   */
  async bringAll(
    traceIds: readonly TraceId[],
    maxRuns: number,
    isWanted: (name: string) => boolean,
  ): Promise<FilesOfRuns> {
    const { traces, maxBytes = DEFAULT_MAX_BYTES } = this.deps;
    const wanted: (readonly [TraceId, SharedFile])[] = [];
    const seen = new Set<TraceId>();
    const leftOut = new Set<TraceId>();
    let bytes = 0;
    for (const { traceId, ...file } of await traces.latestFiles(traceIds)) {
      if (!isWanted(file.name)) continue;
      if (!seen.has(traceId) && (seen.size >= maxRuns || bytes + file.sizeBytes > maxBytes)) leftOut.add(traceId);
      if (leftOut.has(traceId)) continue;
      seen.add(traceId);
      bytes += file.sizeBytes;
      wanted.push([traceId, file]);
    }
    const paths: string[] = [];
    const queue = wanted.values();
    const fetchSome = async () => {
      for (const [traceId, file] of queue) {
        if (await this.bring(traceId, file)) paths.push(`${traceId}/${file.name}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fetchSome));
    await this.makeRoom();
    return { folder: this.runsFolder, paths: paths.sort(), leftOutCount: leftOut.size };
  }

  traceIds(): readonly TraceId[] {
    return [...new Set([...this.cached.values()].map(({ traceId }) => traceId))];
  }

  async forget(traceId: TraceId): Promise<void> {
    const beforeMs = this.deps.clock.monotonicMs() - STAYS_MS;
    for (const [id, file] of this.cached) {
      if (file.traceId === traceId && file.usedMs <= beforeMs) await this.remove(id, file);
    }
  }

  private get runsFolder(): string {
    return join(this.deps.folder, 'runs');
  }

  /** @returns false where the object has gone */
  private async bring(traceId: TraceId, { name, objectKey, sizeBytes }: SharedFile): Promise<boolean> {
    const id = `${traceId}/${name}`;
    const usedMs = this.deps.clock.monotonicMs();
    const known = this.cached.get(id);
    const isSame = known?.objectKey === objectKey;
    const file =
      known !== undefined && isSame
        ? known
        : { traceId, objectKey, sizeBytes, made: this.fetch(id, objectKey), usedMs };
    if (!isSame) this.cachedBytes += sizeBytes - (known?.sizeBytes ?? 0);
    file.usedMs = usedMs;
    this.cached.delete(id);
    this.cached.set(id, file);
    try {
      await file.made;
      return true;
    } catch (error) {
      if (this.cached.get(id) === file) {
        this.cached.delete(id);
        this.cachedBytes -= sizeBytes;
      }
      if (error instanceof GoneError) return false;
      throw error;
    }
  }

  /** The file is renamed when it is complete; readers of the previous one are not interrupted. */
  private async fetch(id: string, objectKey: string): Promise<void> {
    const path = join(this.runsFolder, id);
    const partial = `${path}.${createHash('sha1').update(objectKey).digest('hex')}.partial`;
    await mkdir(dirname(path), { recursive: true });
    // No await once it is open: an error of its connection would have no listener.
    const content = await this.deps.bucket.open(objectKey);
    if (content === undefined) throw new GoneError();
    await pipeline(content, createWriteStream(partial));
    await rename(partial, path);
  }

  private async makeRoom(): Promise<void> {
    const { clock, maxBytes = DEFAULT_MAX_BYTES } = this.deps;
    const beforeMs = clock.monotonicMs() - STAYS_MS;
    for (const [id, file] of this.cached) {
      if (this.cachedBytes <= maxBytes || file.usedMs > beforeMs) return;
      await this.remove(id, file);
    }
  }

  private async remove(id: string, { sizeBytes }: CachedFile): Promise<void> {
    this.cached.delete(id);
    this.cachedBytes -= sizeBytes;
    await rm(join(this.runsFolder, id), { force: true });
  }
}

class GoneError extends Error {}
