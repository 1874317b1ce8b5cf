import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { SourceError } from './record-source.js';

/** Files of a data folder without records, and lines that could not be read; ignored in folders. */
const NOT_RECORDS = ['**/resources.jsonl', '**/pending.jsonl', '**/rejects.jsonl', '**/rejects.old.jsonl'];

/** How an operand is resolved. */
export interface PathSearch {
  /** The folder that relative paths are relative to. */
  readonly workingDir: string;
  /** The files that are taken from a folder, at any depth, for example `*.{jsonl,parquet}`. */
  readonly names: string;
}

/**
 * Returns the files that an operand stands for: a file, the files in a folder, or those that match a pattern (`*`, `?`, `**`, `{a,b}`), sorted by name. An existing file is never read as a pattern.
 * @throws SourceError `notFound` if there are none
 */
export async function findPaths(operand: string, { workingDir, names }: PathSearch): Promise<readonly string[]> {
  const path = resolve(workingDir, operand);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) {
    const inside = await glob(`**/${names}`, { cwd: path, ignore: NOT_RECORDS, expandDirectories: false });
    if (inside.length > 0) return inside.sort().map((name) => join(operand, name));
    throw new SourceError('notFound', `${operand} is a folder without ${names}. Name another folder, or files`);
  }
  if (found !== undefined) return [operand];
  if (!isDynamicPattern(operand)) throw new SourceError('notFound', `${operand} does not exist. Check the path`);
  const matches = await glob(operand, { cwd: workingDir, expandDirectories: false, absolute: operand.startsWith('/') });
  if (matches.length > 0) return matches.sort();
  throw new SourceError('notFound', `no file matches ${operand}. Check the pattern`);
}
