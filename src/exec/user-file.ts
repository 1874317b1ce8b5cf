import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { EngineSwitches } from './engine-switches.js';
import { findProjectFolder } from './project-folder.js';

/** A JSONL file that the user has the engine write. */
export interface UserFile {
  readonly path: string;
  /** Its length before the command began: the engine appends. */
  readonly fromOffset: number;
}

/**
 * Where the engine writes the file that the user asked for: `<log path>/NAME`, the log path being `logs` in the project
 * folder unless it is told. `undefined` where the user asked for none.
 */
export function findUserFile(switches: EngineSwitches, workingDir: string): UserFile | undefined {
  const { fileName, logPath = 'logs' } = switches;
  if (fileName === undefined) return undefined;
  const project = findProjectFolder(switches, workingDir) ?? workingDir;
  const path = resolve(project, logPath, fileName);
  return { path, fromOffset: lengthOf(path) };
}

function lengthOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true ? found.size : 0;
}
