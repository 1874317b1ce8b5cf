import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../core/errors.js';
import { LOG_FILE } from '../../log/append-file.js';
import type { TraceId } from '../../record/telemetry-record.js';
import { type ObjectStore, tracePrefix } from '../../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../../storage/journal-store.js';
import { SEGMENTS_FOLDER, segmentName } from './segments.js';

/** What files are shared with. */
export interface SharedFilesDeps {
  readonly journal: Pick<JournalStore, 'filesOf' | 'putFiles'>;
  readonly bucket: Pick<ObjectStore, 'put' | 'putFile' | 'list' | 'remove'>;
  readonly processId: string;
  /** Traces are in its `runs/`. */
  readonly folder: string;
  readonly newId: () => string;
}

/**
 * Uploads files of traces, as `runs/<trace id>/<generation>-<upload>/<name>`: an object is never written over, and
 * counts once the database names it, which it does only for the process that owns the trace.
 */
export class SharedFiles {
  constructor(private readonly deps: SharedFilesDeps) {}

  /**
   * Shares files of a trace as they are now, or their beginnings; missing ones are skipped. One call at a time for each
   * trace. A whole log takes the place of its segments.
   * @param sizes of those of which only the beginning counts, in bytes
   * @returns false where another process has the trace
   * @throws ArtifactError, StoreError
   */
  async share(
    traceId: TraceId,
    generation: number,
    names: readonly string[],
    sizes: Readonly<Record<string, number>> = {},
  ): Promise<boolean> {
    const { bucket, folder } = this.deps;
    const prefix = this.prefixOf(traceId, generation);
    const files: SharedFile[] = [];
    for (const name of names) {
      const path = join(folder, 'runs', traceId, name);
      const sizeBytes = sizes[name] ?? (await sizeOf(path));
      if (sizeBytes === undefined) continue;
      await bucket.putFile(prefix + name, path, sizeBytes);
      files.push({ name, objectKey: prefix + name, sizeBytes });
    }
    return await this.name(traceId, files, LOG_FILE in sizes ? SEGMENTS_FOLDER : null);
  }

  /**
   * Shares the part of a trace's log that begins at a byte.
   * @param bytes a segment
   * @returns false where another process has the trace
   * @throws ArtifactError, StoreError: whether it is shared is not known; another that is shared for this byte takes its place
   */
  async shareSegment(traceId: TraceId, generation: number, firstByte: number, bytes: Buffer): Promise<boolean> {
    const name = segmentName(firstByte);
    const objectKey = this.prefixOf(traceId, generation) + name;
    await this.deps.bucket.put(objectKey, bytes);
    return await this.name(traceId, [{ name, objectKey, sizeBytes: bytes.length }], null);
  }

  /**
   * Removes what the database does not name: what was replaced, and what was left by a process that lost the trace, or ended.
   * Not while something is shared. Whatever has come since of a later generation stays: this process may have lost the trace without knowing.
   */
  async tidy(traceId: TraceId, generation: number): Promise<void> {
    const { bucket, journal } = this.deps;
    const keys = (await bucket.list(tracePrefix(traceId))).filter((key) => generationOf(key) <= generation);
    const needed = new Set((await journal.filesOf(traceId)).map(({ objectKey }) => objectKey));
    await bucket.remove(keys.filter((key) => !needed.has(key)));
  }

  private prefixOf(traceId: TraceId, generation: number): string {
    // Numbers of one length sort as they count.
    return `${tracePrefix(traceId)}${String(generation).padStart(10, '0')}-${this.deps.newId().slice(0, 8)}/`;
  }

  /** Names files in the database; removes them if another process owns the trace. */
  private async name(traceId: TraceId, files: readonly SharedFile[], replacedFolder: string | null): Promise<boolean> {
    const { bucket, journal, processId } = this.deps;
    const isShared = await journal.putFiles(processId, traceId, files, replacedFolder);
    if (!isShared) await bucket.remove(files.map(({ objectKey }) => objectKey));
    return isShared;
  }
}

/** Returns the generation of the process that uploaded an object; 0 if its key has none. */
function generationOf(key: string): number {
  return Number(/^runs\/[^/]+\/(\d{10})-/.exec(key)?.[1] ?? 0);
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
