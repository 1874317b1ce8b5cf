import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import { namesIn } from '../component/names-in.js';
import { slices } from '../component/slices.js';
import type { TraceId } from '../record/ids.js';
import type { UnnamedRun } from '../store/trace-catalog.js';
import type { QueryFiles } from './query-files.js';

/** Runs that one query sees at most; of more, those written to last. */
export const MAX_QUERY_RUNS = 20_000;
/** Folders that are looked at at once. */
const AT_ONCE = 64;
/** The name of a run's Parquet file. */
export const PARQUET = /^telemetry(-[1-9][0-9]*)?\.parquet$/;

/**
 * Finds the files of runs. A run that has none yet is not missed, and one that is removed meanwhile is passed over.
 * @param dataFolder the data folder; runs are in its `runs/`
 * @param traceIds the runs that whoever asks may see
 * @param options numbers of runs that nobody named, and how many runs there may be at the most
 */
export async function listQueryFiles(
  dataFolder: string,
  traceIds: readonly TraceId[],
  { unnamed = [], maxRuns = MAX_QUERY_RUNS }: { unnamed?: readonly UnnamedRun[]; maxRuns?: number } = {},
): Promise<QueryFiles> {
  const runsFolder = join(dataFolder, 'runs');
  const seen = traceIds.length <= maxRuns ? traceIds : await newest(runsFolder, traceIds, maxRuns);
  const isSeen = new Set(seen);
  const parquet: string[] = [];
  const summaries: string[] = [];
  await eachSome(seen, async (traceId) => {
    for (const name of await namesIn(join(runsFolder, traceId))) {
      if (PARQUET.test(name)) parquet.push(`${traceId}/${name}`);
      else if (name === 'run.json') summaries.push(`${traceId}/${name}`);
    }
  });
  return {
    runsFolder,
    parquet: parquet.sort(),
    summaries: summaries.sort(),
    unnamed: unnamed.filter(({ traceId }) => isSeen.has(traceId)),
    leftOutCount: traceIds.length - seen.length,
  };
}

async function newest(folder: string, traceIds: readonly TraceId[], count: number): Promise<readonly TraceId[]> {
  const timed: { readonly traceId: TraceId; readonly atMs: number }[] = [];
  await eachSome(traceIds, async (traceId) => {
    timed.push({ traceId, atMs: await modifiedMs(join(folder, traceId)) });
  });
  return timed
    .sort((a, b) => b.atMs - a.atMs)
    .slice(0, count)
    .map(({ traceId }) => traceId);
}

/** In milliseconds; 0 where nothing is there. */
async function modifiedMs(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return 0;
    throw error;
  }
}

async function eachSome<T>(all: readonly T[], look: (one: T) => Promise<void>): Promise<void> {
  for (const some of slices(all, AT_ONCE)) await Promise.all(some.map(look));
}
