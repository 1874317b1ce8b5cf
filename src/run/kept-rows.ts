import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { slices } from '../core/lists.js';
import { parseRunRows } from '../storage/parse-run-rows.js';
import type { RunRows } from '../storage/run-rows.js';
import { ROWS_FOLDER } from './run-row-backup.js';

/**
 * Rows of runs from their files, in the order of the runs' numbers, some at a time.
 * @param damaged takes the paths of those that cannot be read
 */
export async function* keptRows(
  dataFolder: string,
  atATime: number,
  damaged: string[],
): AsyncGenerator<readonly RunRows[]> {
  const folder = join(dataFolder, ROWS_FOLDER);
  const names = await readdir(folder).catch((error: unknown): string[] => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const runIds = names.flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []).map(Number);
  runIds.sort((a, b) => a - b);
  for (const some of slices(runIds, atATime)) {
    const batch: RunRows[] = [];
    for (const runId of some) {
      const path = join(folder, `${runId}.json`);
      const rows = parseRunRows(await readFile(path, 'utf8'));
      if (rows === undefined) damaged.push(path);
      else batch.push(rows);
    }
    yield batch;
  }
}
