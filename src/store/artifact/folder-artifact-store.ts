import { randomUUID } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, realpath, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { errorCode } from '../../component/error-code.js';
import { ArtifactError } from './artifact-error.js';
import { type ArtifactPath, parseArtifactPath } from './artifact-path.js';
import type {
  Artifact,
  ArtifactKey,
  ArtifactStore,
  ByteRange,
  OpenArtifact,
  RemovedArtifacts,
} from './artifact-store.js';

/** Where artifacts are while they are written, below the folder of all; runs are numbers. */
const INCOMING = 'incoming';
/** What is read in one piece, in bytes: 256 KiB. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Artifacts in a folder: `<folder>/<run id>/<step index>/<path>`. Symbolic links are not followed: one in the place of a
 * file or folder is none.
 */
export class FolderArtifactStore implements ArtifactStore {
  /**
   * @param folder made when the first artifact comes; usually `<data>/artifacts`
   * @param isSynced whether an artifact is on the disk, and not just with the operating system, when it counts as kept
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
        return await describe(handle, key.path);
      } finally {
        await handle.close();
      }
    });
  }

  async open(key: ArtifactKey, range?: ByteRange): Promise<OpenArtifact | undefined> {
    return this.guard(async () => {
      const handle = await this.openFile(key);
      if (handle === undefined) return undefined;
      const artifact = await describe(handle, key.path).catch(async (error: unknown) => {
        await handle.close();
        throw error;
      });
      // Without `end` where everything is wanted: an empty file has no last byte.
      const part = range === undefined ? {} : { start: range.from, end: range.to - 1 };
      const content = handle.createReadStream({ ...part, highWaterMark: CHUNK_BYTES });
      return { artifact, content };
    });
  }

  async put(key: ArtifactKey, content: AsyncIterable<Uint8Array>): Promise<void> {
    const incoming = join(this.folder, INCOMING, randomUUID());
    await this.guard(() => mkdir(dirname(incoming), { recursive: true, mode: 0o700 }));
    try {
      const handle = await this.guard(() => open(incoming, 'wx', 0o600));
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

  async removeRun(runId: number): Promise<RemovedArtifacts> {
    const run = join(this.folder, String(runId));
    return this.guard(async () => {
      let sizeBytes = 0;
      const paths = await filesBelow(run, run);
      for (const path of paths) sizeBytes += (await stat(join(run, path)).catch(() => undefined))?.size ?? 0;
      await rm(run, { recursive: true, force: true });
      return { count: paths.length, sizeBytes };
    });
  }

  /** Removes what earlier processes had not finished writing. To be called before the first `put`, by who holds the folder alone. */
  async removeUnfinished(): Promise<void> {
    await this.guard(() => rm(join(this.folder, INCOMING), { recursive: true, force: true }));
  }

  /** `undefined` where there is no such file; a link and a folder are none. */
  private async openFile(key: ArtifactKey): Promise<FileHandle | undefined> {
    const path = this.pathOf(key);
    try {
      if (!(await this.isWithin(dirname(path)))) return undefined;
      // Not blocking: a named pipe would be waited for.
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      if ((await handle.stat()).isFile()) return handle;
      await handle.close();
      return undefined;
    } catch (error) {
      if (ABSENT.has(errorCode(error) ?? '')) return undefined;
      throw error;
    }
  }

  /** Whether a folder is where its path says, and no link on the way leads elsewhere. */
  private async isWithin(folder: string): Promise<boolean> {
    return (await realpath(folder)) === join(await realpath(this.folder), relative(this.folder, folder));
  }

  private async moveIn(incoming: string, path: string): Promise<void> {
    const folder = dirname(path);
    const firstMade = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await this.isWithin(folder))) throw new ArtifactError('refused', `${folder} is a symbolic link to elsewhere`);
    await rename(incoming, path);
    if (!this.isSynced) return;
    const last = firstMade === undefined ? folder : dirname(firstMade);
    for (let made = folder; ; made = dirname(made)) {
      await syncFolder(made);
      if (made === last || made === this.folder || dirname(made) === made) return;
    }
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

/** What the system says where a path is not that of a file. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO']);

async function describe(handle: FileHandle, path: ArtifactPath): Promise<Artifact> {
  const { size, mtimeNs, mtimeMs, ino } = await handle.stat({ bigint: true });
  // Each artifact that comes is a file of its own, so another content has another number or time.
  const etag = `"${ino.toString(16)}-${size.toString(16)}-${mtimeNs.toString(16)}"`;
  return { path, sizeBytes: Number(size), modifiedUnixMs: Number(mtimeMs), etag };
}

/** Paths of the files below a folder, links not followed; none where there is no such folder. */
async function filesBelow(base: string, folder: string): Promise<ArtifactPath[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown): Dirent[] => {
    if (ABSENT.has(errorCode(error) ?? '')) return [];
    throw error;
  });
  const found: ArtifactPath[] = [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) for (const each of await filesBelow(base, path)) found.push(each);
    if (!entry.isFile()) continue;
    const artifact = parseArtifactPath(relative(base, path).split(sep).join('/'));
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
    return new ArtifactError('refused', 'there is an artifact with this name, and one below it: rename one of them', {
      cause,
    });
  }
  const reason = code || String(cause);
  return new ArtifactError('unavailable', `${folder} cannot be read or written (${reason}): check it`, { cause });
}
