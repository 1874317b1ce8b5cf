import { randomUUID } from 'node:crypto';
import { type Dirent, existsSync, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { readFolderUsage } from '../core/folders.js';
import { FolderSync } from '../log/append-file.js';
import {
  type Artifact,
  ArtifactError,
  type ArtifactKey,
  type ArtifactPath,
  type ArtifactStore,
  type ArtifactUsage,
  artifactPathIn,
  type ByteRange,
  describeFile,
  isAbsent,
  type OpenArtifact,
  openRegularFile,
  readFileOf,
} from '../storage/artifacts.js';

/** Where artifacts are while they are written, below the folder of all; runs are numbers. */
const INCOMING = 'incoming';

/** Folders of steps that are remembered. */
const MAX_SYNCED = 1_000;

/**
 * Artifacts in a folder: `<folder>/<run id>/<step index>/<path>`. Symbolic links are not followed: one in place of a
 * file or folder counts as missing.
 */
export class FolderArtifactStore implements ArtifactStore {
  private readonly folderSync = new FolderSync(syncFolder);
  /** Folders whose own entries, and those of the folders above, are durable: whoever made them may have failed to see to it, also before a restart. */
  private readonly synced = new Set<string>();

  /**
   * @param folder created with the first artifact; usually `<data>/artifacts`
   * @param isSynced whether an artifact must be synced to the disk before it counts as stored
   */
  constructor(
    private readonly folder: string,
    private readonly isSynced = true,
  ) {}

  async list(runId: number, stepIndex: number): Promise<readonly Artifact[]> {
    const base = this.stepFolder(runId, stepIndex);
    const artifacts: Artifact[] = [];
    for (const path of await this.guard(() => filesBelow(base, base))) {
      const found = await this.stat({ runId, stepIndex, path });
      if (found !== undefined) artifacts.push(found);
    }
    return artifacts.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async stat(key: ArtifactKey): Promise<Artifact | undefined> {
    return this.guard(async () => {
      const handle = await this.openFile(key);
      if (handle === undefined) return undefined;
      try {
        return await describeFile(handle, key.path);
      } finally {
        await handle.close();
      }
    });
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined> {
    return this.guard(async () => {
      const handle = await this.openFile(key);
      if (handle === undefined) return undefined;
      const artifact = await closeOnFailure(handle, () => describeFile(handle, key.path));
      return { artifact, content: readFileOf(handle, range) };
    });
  }

  async put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void> {
    const incoming = join(this.folder, INCOMING, randomUUID());
    const handle = await this.guard(() => makeFile(incoming));
    try {
      try {
        for await (const chunk of content) await this.guard(() => handle.writeFile(chunk));
        if (this.isSynced) await this.guard(() => handle.sync());
      } finally {
        await handle.close();
      }
      await this.guard(() => this.moveIn(incoming, this.pathOf(key)));
    } catch (error) {
      await rm(incoming, { force: true });
      throw error;
    }
  }

  async remove(key: ArtifactKey): Promise<boolean> {
    return this.guard(async () => {
      const handle = await this.openFile(key);
      if (handle === undefined) return false;
      await handle.close();
      const path = this.pathOf(key);
      await unlink(path);
      await this.removeEmpty(dirname(path));
      return true;
    });
  }

  async usage(runId?: number): Promise<ArtifactUsage> {
    if (runId !== undefined) {
      const { fileCount, sizeBytes } = await readFolderUsage(join(this.folder, String(runId)));
      return { count: fileCount, sizeBytes };
    }
    const total = { count: 0, sizeBytes: 0 };
    const names = await this.guard(() => readdir(this.folder).catch(orNone));
    for (const name of names.filter((one) => /^\d+$/.test(one))) {
      const { count, sizeBytes } = await this.usage(Number(name));
      total.count += count;
      total.sizeBytes += sizeBytes;
    }
    return total;
  }

  async removeRun(runId: number): Promise<ArtifactUsage> {
    const run = join(this.folder, String(runId));
    return this.guard(async () => {
      let sizeBytes = 0;
      const paths = await filesBelow(run, run);
      for (const path of paths) sizeBytes += (await stat(join(run, path)).catch(() => undefined))?.size ?? 0;
      await rm(run, { recursive: true, force: true });
      return { count: paths.length, sizeBytes };
    });
  }

  close(): void {}

  /** Removes files that earlier processes left unfinished. Call it before the first `put`, with the lock of the folder. */
  async removeUnfinished(): Promise<void> {
    await this.guard(() => rm(join(this.folder, INCOMING), { recursive: true, force: true }));
  }

  /** `undefined` if there is no such file; links and folders do not count. */
  private async openFile(key: ArtifactKey): Promise<FileHandle | undefined> {
    const path = this.pathOf(key);
    const folder = dirname(path);
    try {
      return this.isWithin(folder) ? await openRegularFile(path) : undefined;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  /** Whether a folder is at its path without any link on the way. @throws where there is no such folder */
  private isWithin(folder: string): boolean {
    // At once: asking the pool of threads, for each artifact, costs more than the answer, which the system has in memory.
    return realpathSync.native(folder) === join(realpathSync.native(this.folder), relative(this.folder, folder));
  }

  private async moveIn(incoming: string, path: string): Promise<void> {
    const folder = dirname(path);
    // Of the files of a step, all but the first find their folder.
    if (!existsSync(folder)) {
      this.synced.delete(folder);
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
    if (!this.isWithin(folder)) throw new ArtifactError('refused', `${folder} is a symbolic link to elsewhere`);
    await rename(incoming, path);
    if (!this.isSynced) return;
    const isKnown = this.synced.has(folder);
    for (let at = folder; ; at = dirname(at)) {
      await this.folderSync.sync(at);
      if (isKnown || at === dirname(this.folder) || dirname(at) === at) break;
    }
    if (this.synced.size >= MAX_SYNCED) this.synced.clear();
    this.synced.add(folder);
  }

  private async removeEmpty(folder: string): Promise<void> {
    for (let at = folder; at !== this.folder && at.startsWith(this.folder + sep); at = dirname(at)) {
      const isRemoved = await rmdir(at).then(
        () => true,
        () => false,
      );
      if (!isRemoved) return;
    }
  }

  private pathOf({ runId, stepIndex, path }: ArtifactKey): string {
    return join(this.stepFolder(runId, stepIndex), path);
  }

  private stepFolder(runId: number, stepIndex: number): string {
    return join(this.folder, String(runId), String(stepIndex));
  }

  private async guard<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      throw error instanceof ArtifactError ? error : toArtifactError(error, this.folder);
    }
  }
}

/** Makes a file that is not there, and the folder that it is in where that is not there either. */
async function makeFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return await open(path, 'wx', 0o600);
  }
}

function orNone(error: unknown): string[] {
  if (isAbsent(error)) return [];
  throw error;
}

/** Paths of the files below a folder, links not followed; none if the folder does not exist. */
async function filesBelow(base: string, folder: string): Promise<ArtifactPath[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown): Dirent[] => {
    if (isAbsent(error)) return [];
    throw error;
  });
  const found: ArtifactPath[] = [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) for (const each of await filesBelow(base, path)) found.push(each);
    if (!entry.isFile()) continue;
    const artifact = artifactPathIn(base, path);
    if (artifact !== undefined) found.push(artifact);
  }
  return found;
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function toArtifactError(cause: unknown, folder: string): ArtifactError {
  const code = errorCode(cause) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new ArtifactError('full', `the disk of ${folder} is full: free some space`, { cause });
  }
  if (code === 'EISDIR' || code === 'ENOTDIR' || code === 'ENOTEMPTY' || code === 'EEXIST') {
    return new ArtifactError(
      'conflict',
      'an artifact has this name, and another one uses it as a folder: rename one of them',
      {
        cause,
      },
    );
  }
  const reason = code || String(cause);
  return new ArtifactError('unavailable', `${folder} cannot be read or written (${reason}): check it`, { cause });
}
