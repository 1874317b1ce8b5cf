import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../core/errors.js';
import type { TraceId } from '../../record/telemetry-record.js';
import { type ObjectStore, tracePrefix } from '../../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../../storage/journal-store.js';
import { generationOf, generationText } from './segments.js';

/** What files are shared with. */
export interface SharedFilesDeps {
  readonly journal: Pick<JournalStore, 'filesOf' | 'putFiles'>;
  readonly bucket: Pick<ObjectStore, 'putFile' | 'list' | 'remove'>;
  readonly processId: string;
  /** Traces are in its `runs/`. */
  readonly folder: string;
  readonly newId: () => string;
}

/**
 * Puts files of traces into the bucket, as `runs/<trace id>/<generation>-<upload>/<name>`: an object is never written over, and
 * counts once the database names it, which it does only for the process that has the trace.
 */
export class SharedFiles {
  constructor(private readonly deps: SharedFilesDeps) {}

  /**
   * Shares files of a trace as they are now, or their beginnings; one that is not there is passed over. One call at a time for each trace.
   * @param sizes of those of which only the beginning counts, in bytes
   * @returns false where another process has the trace
   * @throws ArtifactError, StoreError
   */
  async share(
    traceId: TraceId,
    generation: number,
    names: readonly string[],
    sizes: ReadonlyMap<string, number> = new Map(),
  ): Promise<boolean> {
    const { bucket, journal, folder, newId, processId } = this.deps;
    const place = `${tracePrefix(traceId)}${generationText(generation)}-${newId().slice(0, 8)}/`;
    const files: SharedFile[] = [];
    for (const name of names) {
      const path = join(folder, 'runs', traceId, name);
      const sizeBytes = sizes.get(name) ?? (await sizeOf(path));
      if (sizeBytes === undefined) continue;
      await bucket.putFile(place + name, path, sizeBytes);
      files.push({ name, objectKey: place + name, sizeBytes });
    }
    const before = await journal.filesOf(traceId);
    const isShared = await journal.putFiles(processId, traceId, files);
    const replaced = new Set(files.map(({ name }) => name));
    const needless = isShared ? before.filter(({ name }) => replaced.has(name)) : files;
    await bucket.remove(needless.map(({ objectKey }) => objectKey));
    return isShared;
  }

  /**
   * Removes what is not needed in the bucket beside a whole log: segments, and what was left by a process that lost the trace,
   * or ended. Whatever has come since of a later generation stays: this process may have lost the trace without knowing.
   */
  async tidy(traceId: TraceId, generation: number): Promise<void> {
    const { bucket, journal } = this.deps;
    const keys = (await bucket.list(tracePrefix(traceId))).filter((key) => generationOf(key) <= generation);
    const needed = new Set((await journal.filesOf(traceId)).map(({ objectKey }) => objectKey));
    await bucket.remove(keys.filter((key) => !needed.has(key)));
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
