import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { namesIn } from '../core/folders.js';
import { slices } from '../core/lists.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { UnnamedRun } from '../storage/trace-catalog.js';

/** The files that a query may read; paths are relative to the folder of runs. */
export interface QueryFiles {
  /** Absolute path of the folder of runs. */
  readonly runsFolder: string;
  /** Paths such as `<trace id>/telemetry.parquet` and `<trace id>/telemetry-2.parquet`. */
  readonly parquet: readonly string[];
  /** Paths such as `<trace id>/run.json`. */
  readonly summaries: readonly string[];
  /** Runs of commands without a step, whose `run.json` does not contain the run's id. */
  readonly unnamed: readonly UnnamedRun[];
  /** The number of runs beyond the limit, which the query does not read: those written to longest ago. */
  readonly leftOutCount: number;
}

/** The most runs that a query reads: those written to last. */
export const MAX_QUERY_RUNS = 20_000;
/** The number of folders that are examined concurrently. */
const AT_ONCE = 64;
/** The name of a run's Parquet file. */
const PARQUET = /^telemetry(-[1-9][0-9]*)?\.parquet$/;

/**
 * Finds the files of runs. Missing files are ignored, also those removed meanwhile.
 * @param dataFolder the data folder; runs are in its `runs/`
 * @param traceIds the runs that the caller may see
 * @param options ids of runs without a step, and the most runs
 */
export async function listQueryFiles(
  dataFolder: string,
  traceIds: readonly TraceId[],
  { unnamed = [], maxRuns = MAX_QUERY_RUNS }: { unnamed?: readonly UnnamedRun[]; maxRuns?: number } = {},
): Promise<QueryFiles> {
  const runsFolder = join(dataFolder, 'runs');
  const seen = traceIds.length <= maxRuns ? traceIds : await newest(runsFolder, traceIds, maxRuns);
  const isSeen = new Set(seen);
  const paths: string[] = [];
  await eachSome(seen, async (traceId) => {
    for (const name of await namesIn(join(runsFolder, traceId))) {
      if (isQueried(name)) paths.push(`${traceId}/${name}`);
    }
  });
  return {
    runsFolder,
    ...byKind(paths),
    unnamed: unnamed.filter(({ traceId }) => isSeen.has(traceId)),
    leftOutCount: traceIds.length - seen.length,
  };
}

/** Copies of the files of runs that are in a bucket. */
export interface SharedFiles {
  /** Copies the wanted files of the runs written to last, as far as there is room. @returns the local folder of runs, and paths in it */
  bringAll(
    traceIds: readonly TraceId[],
    maxRuns: number,
    isWanted: (name: string) => boolean,
  ): Promise<{ readonly folder: string; readonly paths: readonly string[]; readonly leftOutCount: number }>;
}

/** Finds the files of runs that several processes share. */
export async function fetchQueryFiles(
  shared: SharedFiles,
  traceIds: readonly TraceId[],
  unnamed: readonly UnnamedRun[],
): Promise<QueryFiles> {
  const { folder, paths, leftOutCount } = await shared.bringAll(traceIds, MAX_QUERY_RUNS, isQueried);
  const seen = new Set(paths.map((path) => path.split('/', 1)[0]));
  return {
    runsFolder: folder,
    ...byKind(paths),
    unnamed: unnamed.filter(({ traceId }) => seen.has(traceId)),
    leftOutCount,
  };
}

function isQueried(name: string): boolean {
  return PARQUET.test(name) || name === 'run.json';
}

/** @param paths of files that queries read */
function byKind(paths: readonly string[]): Pick<QueryFiles, 'parquet' | 'summaries'> {
  const sorted = [...paths].sort();
  const isSummary = (path: string) => path.endsWith('/run.json');
  return { parquet: sorted.filter((path) => !isSummary(path)), summaries: sorted.filter(isSummary) };
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

/** Returns the modification time in milliseconds; 0 for a missing file. */
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
