import { chmodSync, constants, copyFileSync } from 'node:fs';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../core/errors.js';
import { namesIn } from '../core/folders.js';
import { slices } from '../core/lists.js';
import { type ArtifactPath, artifactPathIn } from '../storage/artifacts.js';

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
export async function spoolArtifacts(
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
export function spooledSteps(commandFolder: string): Promise<readonly string[]> {
  return namesIn(join(commandFolder, STEPS_FOLDER));
}

/** The artifacts in a command's folder. @param stepId as above */
export async function spooledArtifacts(
  commandFolder: string,
  stepId: string | null,
): Promise<readonly FoundArtifact[]> {
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

/** A file that is to become an artifact of a step. */
export interface FoundArtifact {
  /** Its path as an artifact. */
  readonly path: ArtifactPath;
  /** Where it lies. */
  readonly file: string;
  readonly sizeBytes: number;
}
