import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { readFolderUsage } from '../core/folders.js';
import { FolderSync } from '../log/append-file.js';
import {
  type Artifact,
  ArtifactError,
  type ArtifactFolder,
  type ArtifactKey,
  type ArtifactPath,
  type ArtifactStore,
  type ArtifactUsage,
  type ByteRange,
  describeFile,
  describeStats,
  isAbsent,
  type OpenArtifact,
  openRegularFile,
  parseArtifactPath,
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
    const artifacts: Artifact[] = [];
    const waiting: (ArtifactPath | '')[] = [''];
    for (const folder of waiting) {
      const { folders, files } = await this.listFolder(runId, stepIndex, folder);
      for (const inner of folders) waiting.push(inner);
      for (const file of files) artifacts.push(file);
    }
    return artifacts.sort(byPath);
  }

  async listFolder(runId: number, stepIndex: number, folder: ArtifactPath | ''): Promise<ArtifactFolder> {
    return this.guard(async () => {
      const base = join(this.stepFolder(runId, stepIndex), folder);
      const folders: ArtifactPath[] = [];
      const files: Artifact[] = [];
      try {
        const entries = await readdir(base, { withFileTypes: true });
        if (!this.isWithin(base)) return { folders, files };
        for (const entry of entries) {
          const path = parseArtifactPath(folder === '' ? entry.name : `${folder}/${entry.name}`);
          if (path === undefined) continue;
          if (entry.isDirectory()) folders.push(path);
          // At once, as `isWithin` says; what is replaced meanwhile is listed as it was or is.
          const stats = entry.isFile()
            ? lstatSync(join(base, entry.name), { bigint: true, throwIfNoEntry: false })
            : undefined;
          if (stats?.isFile() === true) files.push(describeStats(stats, path));
        }
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
      return { folders: folders.sort(), files: files.sort(byPath) };
    });
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
    return this.guard(async () => {
      const usage = await this.usage(runId);
      await rm(join(this.folder, String(runId)), { recursive: true, force: true });
      return usage;
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
    // At once: asking the pool of threads costs more than the answer, which the system has in memory.
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

function byPath(a: Artifact, b: Artifact): number {
  return a.path < b.path ? -1 : 1;
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
