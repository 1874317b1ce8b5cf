import { chmodSync, constants, copyFileSync, type Dirent, lstatSync, type Stats } from 'node:fs';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { namesIn } from '../core/folders.js';
import { slices } from '../core/lists.js';
import { type ArtifactLimits, type ArtifactPath, artifactPathIn } from '../storage/artifacts.js';

/** A file that is to become an artifact of a step. */
export interface FoundArtifact {
  /** Its path as an artifact. */
  readonly path: ArtifactPath;
  /** Where it lies. */
  readonly file: string;
  readonly sizeBytes: number;
}

/** What a command left in the engine's target folder. */
export interface FoundArtifacts {
  /** The documents of the folder itself first: they matter most where time or room is short. */
  readonly artifacts: readonly FoundArtifact[];
  /** What is left out, in words for people; `null` where nothing is. */
  readonly leftOut: string | null;
}

/** Files and folders that are looked at. */
const MAX_ENTRIES = 100_000;
/** A file system's times come from a clock that ticks; by so much they may be behind, in milliseconds. */
const TICK_MS = 50;
/** Folders of the target folder whose SQL files are artifacts. */
const SQL_FOLDERS = ['run', 'compiled'] as const;

/**
 * Finds the files that were written since a time in a target folder: the JSON documents in it (`manifest.json`,
 * `run_results.json` …), and the SQL files anywhere in its `compiled` and `run`. Symbolic links are not followed. A folder
 * that is not there has none.
 */
export async function findArtifacts(
  targetFolder: string,
  sinceUnixMs: number,
  limits: ArtifactLimits,
): Promise<FoundArtifacts> {
  const found: FoundArtifact[] = [];
  const walk = new Walk(targetFolder);
  const isWanted = ({ name }: Dirent) => name.endsWith('.json') && !name.startsWith('.');
  for (const file of await walk.files(targetFolder, isWanted, false)) found.push(...take(file));
  const documentCount = found.length;
  for (const folder of SQL_FOLDERS) {
    const isSql = ({ name }: Dirent) => name.endsWith('.sql');
    for (const file of await walk.files(join(targetFolder, folder), isSql, true)) found.push(...take(file));
  }
  return bound([...bySize(found.slice(0, documentCount)), ...found.slice(documentCount)], limits, walk.isCutShort);

  function take(file: string): readonly FoundArtifact[] {
    const path = artifactPathIn(targetFolder, file);
    const stats = statsOf(file);
    if (path === undefined || stats?.isFile() !== true || !isSince(stats.mtimeMs, sinceUnixMs)) return [];
    return [{ path, file, sizeBytes: stats.size }];
  }
}

/** At once: the command has just written it, so the system has the answer in memory. `undefined` where there is none. */
function statsOf(file: string): Stats | undefined {
  try {
    return lstatSync(file);
  } catch {
    return undefined;
  }
}

/** Names below folders, as far as there may be. */
class Walk {
  private entryCount = 0;

  constructor(private readonly root: string) {}

  get isCutShort(): boolean {
    return this.entryCount > MAX_ENTRIES;
  }

  async files(folder: string, isWanted: (entry: Dirent) => boolean, isDeep: boolean): Promise<string[]> {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown): Dirent[] => {
      if (errorCode(error) === undefined) throw error;
      return [];
    });
    // A link in the place of the folder itself is followed by `readdir`, one of the target folder is the user's wish.
    if (folder !== this.root && (await lstat(folder).catch(() => undefined))?.isDirectory() !== true) return [];
    const found: string[] = [];
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      this.entryCount += 1;
      if (this.isCutShort) return found;
      const path = join(folder, entry.name);
      if (entry.isFile() && isWanted(entry)) found.push(path);
      if (isDeep && entry.isDirectory()) for (const each of await this.files(path, isWanted, true)) found.push(each);
    }
    return found;
  }
}

/** Whole seconds are what some file systems have: of these, the second counts. */
function isSince(mtimeMs: number, sinceUnixMs: number): boolean {
  return mtimeMs >= sinceUnixMs - TICK_MS || (mtimeMs % 1_000 === 0 && mtimeMs + 1_000 > sinceUnixMs);
}

function bySize(artifacts: readonly FoundArtifact[]): readonly FoundArtifact[] {
  return [...artifacts].sort((a, b) => a.sizeBytes - b.sizeBytes);
}

function bound(found: readonly FoundArtifact[], limits: ArtifactLimits, isCutShort: boolean): FoundArtifacts {
  const artifacts: FoundArtifact[] = [];
  const large: string[] = [];
  let surplus = 0;
  let totalBytes = 0;
  for (const artifact of found) {
    if (artifact.sizeBytes > limits.maxFileBytes) large.push(artifact.path);
    else if (artifacts.length >= limits.maxCount || totalBytes + artifact.sizeBytes > limits.maxTotalBytes)
      surplus += 1;
    else {
      artifacts.push(artifact);
      totalBytes += artifact.sizeBytes;
    }
  }
  const [first, ...others] = large;
  const reasons = [
    ...(first === undefined ? [] : [`${first}${others.length > 0 ? ` and ${others.length} more` : ''}: too large`]),
    ...(surplus === 0 ? [] : [`${surplus} files: more than a step may have`]),
    ...(isCutShort ? [`everything beyond ${MAX_ENTRIES} files and folders`] : []),
  ];
  return { artifacts, leftOut: reasons.length === 0 ? null : reasons.join('; ') };
}

/** Artifacts that could not be brought to where they belong, in a command's folder. */
const ARTIFACTS_FOLDER = 'artifacts';
/** The same of further engine commands in it, each in a folder of its step's id. */
const STEPS_FOLDER = 'steps';
const COPIED_AT_A_TIME = 32;

/**
 * Copies artifacts into a command's folder: the next command writes its own in their place.
 * @param stepId of a further engine command of it; `null` for the command's own
 * @throws errors of the file system
 */
export async function copyArtifactsInto(
  commandFolder: string,
  stepId: string | null,
  artifacts: readonly FoundArtifact[],
): Promise<void> {
  const base = baseOf(commandFolder, stepId);
  const folders = new Set(artifacts.map(({ path }) => dirname(join(base, path))));
  for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const some of slices(artifacts, COPIED_AT_A_TIME)) {
    for (const { path, file } of some) {
      const copy = join(base, path);
      // Where the file system can, both share their blocks until one is written.
      copyFileSync(file, copy, constants.COPYFILE_FICLONE);
      chmodSync(copy, 0o600);
    }
    // In between, signals and timers have their turn.
    await setImmediate();
  }
}

/** Further engine commands of which artifacts are in a command's folder, by their steps' ids. */
export function copiedSteps(commandFolder: string): Promise<readonly string[]> {
  return namesIn(join(commandFolder, STEPS_FOLDER));
}

/** The artifacts in a command's folder. @param stepId as above */
export async function copiedArtifacts(commandFolder: string, stepId: string | null): Promise<readonly FoundArtifact[]> {
  const base = baseOf(commandFolder, stepId);
  const names = await readdir(base, { recursive: true }).catch((error: unknown): string[] => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const found: FoundArtifact[] = [];
  for (const name of names.sort()) {
    const file = join(base, name);
    const stats = await lstat(file);
    const path = artifactPathIn(base, file);
    if (stats.isFile() && path !== undefined) found.push({ path, file, sizeBytes: stats.size });
  }
  return found;
}

function baseOf(commandFolder: string, stepId: string | null): string {
  return stepId === null ? join(commandFolder, ARTIFACTS_FOLDER) : join(commandFolder, STEPS_FOLDER, stepId);
}
