import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { EngineSwitches } from './engine-switches.js';

/** A project's own file, by which its folder is known. */
export const PROJECT_FILE = 'dbt_project.yml';

/**
 * The folder of the engine's project: the one that it was told, else the working folder or the nearest one above it that is
 * a project; `undefined` where none is.
 */
export function findProjectFolder({ projectDir }: EngineSwitches, workingDir: string): string | undefined {
  if (projectDir !== undefined) return resolve(workingDir, projectDir);
  for (let folder = workingDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, PROJECT_FILE))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}
