import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { ClusterStores } from '../storage/cluster/cluster-stores.js';
import type { SharedFile } from '../storage/cluster/shared-trace-store.js';
import { tracePrefix } from '../storage/cluster/trace-prefix.js';

/** What files are shared with. */
export interface SharedFilesDeps {
  readonly stores: Pick<ClusterStores, 'members' | 'traces'>;
  readonly bucket: Pick<ObjectStore, 'putFile' | 'list' | 'remove'>;
  readonly processId: () => string;
  /** Traces are in its `runs/`. */
  readonly folder: string;
  readonly newId: () => string;
}

/**
 * Puts files of traces into the bucket, as `runs/<trace id>/<process id>-<upload>/<name>`: an object is never written over, and
 * counts once the database names it, which it does only for the process that has the trace.
 */
export class SharedFiles {
  private readonly tails = new Map<TraceId, Promise<unknown>>();

  constructor(private readonly deps: SharedFilesDeps) {}

  /** One thing at a time of a trace: what is just uploaded is not counted yet, and would count as needless. */
  private inTurn<T>(traceId: TraceId, action: () => Promise<T>): Promise<T> {
    const done = (this.tails.get(traceId) ?? Promise.resolve()).then(action);
    const tail = done
      .catch(() => undefined)
      .then(() => {
        if (this.tails.get(traceId) === tail) this.tails.delete(traceId);
      });
    this.tails.set(traceId, tail);
    return done;
  }

  /**
   * Shares files of a trace as they are now; one that is not there is passed over.
   * @param storedPart the last part of the log that they contain
   * @returns false where the process has not got the trace
   * @throws ArtifactError, StoreError
   */
  share(traceId: TraceId, names: readonly string[], storedPart?: number): Promise<boolean> {
    return this.inTurn(traceId, () => this.upload(traceId, names, storedPart));
  }

  private async upload(traceId: TraceId, names: readonly string[], storedPart?: number): Promise<boolean> {
    const { bucket, stores, folder, newId } = this.deps;
    const processId = this.deps.processId();
    const place = `${tracePrefix(traceId)}${processId}-${newId().slice(0, 8)}/`;
    const files: SharedFile[] = [];
    for (const name of names) {
      const path = join(folder, 'runs', traceId, name);
      const sizeBytes = await sizeOf(path);
      if (sizeBytes === undefined) continue;
      await bucket.putFile(place + name, path, sizeBytes);
      files.push({ name, objectKey: place + name, sizeBytes });
    }
    const before = await stores.traces.filesOf(traceId);
    const isShared = await stores.traces.putFiles(processId, traceId, files, storedPart);
    const replaced = new Set(files.map(({ name }) => name));
    const needless = isShared ? before.filter(({ name }) => replaced.has(name)) : files;
    await bucket.remove(needless.map(({ objectKey }) => objectKey));
    return isShared;
  }

  /** Removes unused files of an owned trace from the bucket: those that dead processes left. */
  tidy(traceId: TraceId): Promise<void> {
    return this.inTurn(traceId, () => this.removeNeedless(traceId));
  }

  private async removeNeedless(traceId: TraceId): Promise<void> {
    const { bucket, stores } = this.deps;
    const processId = this.deps.processId();
    const keys = await bucket.list(tracePrefix(traceId));
    const needed = new Set((await stores.traces.filesOf(traceId)).map(({ objectKey }) => objectKey));
    const others = (await stores.members.listAlive()).filter((id) => id !== processId);
    const isOthers = (key: string) => others.some((id) => key.startsWith(`${tracePrefix(traceId)}${id}-`));
    // Listed last: from here on no previous owner of the trace can register a file.
    if (!(await stores.traces.isOwn(processId, traceId))) return;
    await bucket.remove(keys.filter((key) => !needed.has(key) && !isOthers(key)));
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
