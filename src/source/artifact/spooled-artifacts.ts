import { constants } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../../component/error-code.js';
import { artifactPathIn } from '../../store/artifact/artifact-path.js';
import type { FoundArtifact } from './found-artifact.js';

/** Artifacts that could not be brought to where they belong, in a command's folder. */
const ARTIFACTS_FOLDER = 'artifacts';

/** Copies artifacts into a command's folder: the next command writes its own in their place. @throws what the file system throws. */
export async function spoolArtifacts(commandFolder: string, artifacts: readonly FoundArtifact[]): Promise<void> {
  for (const { path, file } of artifacts) {
    const copy = join(commandFolder, ARTIFACTS_FOLDER, path);
    await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
    // Where the file system can, both share their blocks until one is written.
    await copyFile(file, copy, constants.COPYFILE_FICLONE);
    await chmod(copy, 0o600);
  }
}

/** The artifacts in a command's folder. */
export async function spooledArtifacts(commandFolder: string): Promise<readonly FoundArtifact[]> {
  const base = join(commandFolder, ARTIFACTS_FOLDER);
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
