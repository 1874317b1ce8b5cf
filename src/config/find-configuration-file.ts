import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorCode } from '../core/errors.js';
import { ConfigurationError } from './configuration-error.js';
import { type Environment, nonEmpty } from './environment.js';

/** A configuration file as it lies on disk. */
export interface FoundFile {
  readonly path: string;
  readonly text: string;
}

/** Where to look for the file. */
export interface FileSearch {
  /** From `--config`. */
  readonly flag: string | undefined;
  readonly environment: Environment;
  readonly workingDir: string;
  readonly homeDir: string;
}

const FILE_NAME = 'run-bridge.yaml';

/**
 * The first of `--config`, RUN_BRIDGE_CONFIG, `./run-bridge.yaml` and `$XDG_CONFIG_HOME/run-bridge/run-bridge.yaml`;
 * `undefined` when neither is named and none of the two is there.
 * @throws ConfigurationError when a file cannot be read.
 */
export function findConfigurationFile(search: FileSearch): FoundFile | undefined {
  const { environment, workingDir, homeDir } = search;
  const named = search.flag ?? nonEmpty(environment.RUN_BRIDGE_CONFIG);
  const configHome = nonEmpty(environment.XDG_CONFIG_HOME) ?? join(homeDir, '.config');
  const candidates = [named ?? FILE_NAME, ...(named === undefined ? [join(configHome, 'run-bridge', FILE_NAME)] : [])];
  for (const candidate of candidates) {
    const path = resolve(workingDir, candidate);
    const text = readIfThere(path, named !== undefined);
    if (text !== undefined) return { path, text };
  }
  return undefined;
}

function readIfThere(path: string, isNamed: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    if (code === 'ENOENT' && !isNamed) return undefined;
    const why = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`;
    throw new ConfigurationError([`configuration file ${path}: ${why}`]);
  }
}
