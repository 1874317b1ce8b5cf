import { open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { errorCode } from '../../component/error-code.js';
import type { EngineSwitches } from './engine-switches.js';
import { findProjectFolder, PROJECT_FILE } from './project-folder.js';

/** What is read of a project's file, in bytes: 1 MiB. */
const MAX_PROJECT_BYTES = 1024 * 1024;
const DEFAULT_TARGET = 'target';

/**
 * The folder that the engine writes what it makes into: `--target-path`, DBT_TARGET_PATH, the project's `target-path`, else
 * `target`; a relative one is meant from the project's folder, as the engine means it. `undefined` where there is no project,
 * so that another tool's `target` is left alone, or where its file leaves the path to a template.
 */
export async function findTargetFolder(switches: EngineSwitches, workingDir: string): Promise<string | undefined> {
  const project = findProjectFolder(switches, workingDir);
  if (switches.targetPath !== undefined) return resolve(project ?? workingDir, switches.targetPath);
  if (project === undefined) return undefined;
  const text = await readStart(join(project, PROJECT_FILE));
  const path = text === undefined ? undefined : await targetPathIn(text);
  return path === null || text === undefined ? undefined : resolve(project, path ?? DEFAULT_TARGET);
}

/** `null` for a path that is only known once the engine has filled in a template. */
async function targetPathIn(text: string): Promise<string | null | undefined> {
  // Most projects do not say it, and need no YAML read for that.
  if (!text.includes('target-path')) return undefined;
  const { parse } = await import('yaml');
  try {
    const document: unknown = parse(text, { logLevel: 'silent' });
    const isMap = typeof document === 'object' && document !== null && 'target-path' in document;
    const path = isMap ? document['target-path'] : undefined;
    if (typeof path !== 'string' || path === '') return undefined;
    return path.includes('{{') ? null : path;
  } catch {
    // The engine has said so already.
    return undefined;
  }
}

async function readStart(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_PROJECT_BYTES), 0, MAX_PROJECT_BYTES, 0);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}
