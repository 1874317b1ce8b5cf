import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { SourceError } from './record-source.js';

/** Files of a data folder that hold no records, and what could not be read: not looked at in folders. */
const NOT_RECORDS = ['**/resources.jsonl', '**/pending.jsonl', '**/rejects.jsonl', '**/rejects.old.jsonl'];

/** Which files an operand stands for. */
export interface PathSearch {
  /** Where relative paths begin. */
  readonly workingDir: string;
  /** What is taken of a folder, below it at any depth, for example `*.{jsonl,parquet}`. */
  readonly names: string;
}

/**
 * The files that an operand stands for: itself, the files of a folder, or those that a pattern matches (`*`, `?`, `**`,
 * `{a,b}`), in the order of their names. A file that exists is itself, whatever is in its name.
 * @throws SourceError `notFound` when nothing is there.
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
