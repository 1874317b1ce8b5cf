import { counted } from '../core/text.js';
import { scopeOf } from '../run/measures/run-scope.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { type EarlierRunsDeps, earlierRuns } from './earlier-runs.js';

/** Since when something fails. */
export interface FailingSince {
  /** The first of the consecutive failed runs that end with the shown run; the shown run if the failure is new. */
  readonly firstRunId: number;
  /** The number of consecutive failed runs, including the shown one. */
  readonly count: number;
  /** The last successful run before them; `null` if none is known. */
  readonly lastGoodRunId: number | null;
  /** Whether the failures may have begun earlier. */
  readonly isAtLeast: boolean;
}

/** Since when a run and its nodes fail; a run that did not fail has none. */
export interface FoundSince {
  readonly run: FailingSince | null;
  /** By unique ids. */
  readonly nodes: ReadonlyMap<string, FailingSince>;
}

/** The same in words, where anything is known of before; of nodes only what is not so of the run. */
export interface SinceTexts {
  readonly run: string | null;
  readonly nodes: ReadonlyMap<string, string>;
}

export function sinceTexts({ run, nodes }: FoundSince): SinceTexts {
  const ofRun = run && sinceText(run);
  const ofNodes = [...nodes].flatMap(([id, since]) => {
    const text = sinceText(since);
    return text === null || text === ofRun ? [] : [[id, text] as const];
  });
  return { run: ofRun, nodes: new Map(ofNodes) };
}

function sinceText({ firstRunId, count, lastGoodRunId, isAtLeast }: FailingSince): string | null {
  const good = lastGoodRunId === null ? '' : `, last good #${lastGoodRunId}`;
  if (count === 1) return isAtLeast || lastGoodRunId === null ? null : `new in this run${good}`;
  return `failing ${isAtLeast ? 'at least ' : ''}since #${firstRunId} (${counted(count, 'run')})${good}`;
}

/** A run with the measures of its commands. */
export interface MeasuredRun {
  readonly run: CatalogRun;
  readonly commands: readonly CommandMeasures[];
}

/** The most earlier runs of the job that are read. */
const MAX_EARLIER = 30;

/** The name of the run among what failed; nodes have others. */
const RUN = '';

/**
 * Determines since when nodes fail, and a failed run as a whole, from earlier runs that the run may be compared with. Runs that did
 * not execute a node, such as those that only compiled it, do not count.
 * @param uniqueIds nodes that the run executed and that failed
 * @param isOfRun whether it is asked for the run as well
 * @throws StoreError
 */
export async function failingSince(
  { run, commands }: MeasuredRun,
  uniqueIds: readonly string[],
  deps: EarlierRunsDeps,
  isOfRun = false,
): Promise<FoundSince> {
  const names = isOfRun && run.status === RUN_STATUS.error ? [RUN, ...uniqueIds] : uniqueIds;
  const found = new Map<string, FailingSince>(
    names.map((id) => [id, { firstRunId: run.id, count: 1, lastGoodRunId: null, isAtLeast: false }]),
  );
  await lookBack(found, { run, commands }, deps);
  const ofRun = found.get(RUN) ?? null;
  found.delete(RUN);
  return { run: ofRun, nodes: found };
}

/** Goes through earlier runs, the last to start first, until all that is asked for did well in one. */
async function lookBack(
  found: Map<string, FailingSince>,
  { run, commands }: MeasuredRun,
  deps: EarlierRunsDeps,
): Promise<void> {
  const open = new Set(found.keys());
  if (open.size === 0) return;
  const query = { statuses: [RUN_STATUS.error, RUN_STATUS.success], limit: MAX_EARLIER };
  const { runs, hasMore } = await earlierRuns(run, commands.map(scopeOf), query, deps);
  const change = (id: string, part: Partial<FailingSince>) => {
    const known = found.get(id);
    if (known !== undefined) found.set(id, { ...known, ...part });
  };
  let isCut = hasMore;
  for await (const { run: one, digests } of runs) {
    if (open.size === 0) return;
    isCut ||= digests === undefined;
    if (digests === undefined) break;
    const failed = new Set(digests.flatMap((digest) => digest.failed));
    const good = new Set(digests.flatMap((digest) => digest.good));
    if (one.status === RUN_STATUS.error) failed.add(RUN);
    else if (good.size > 0) good.add(RUN);
    for (const id of open) {
      if (failed.has(id)) change(id, { firstRunId: one.id, count: (found.get(id)?.count ?? 0) + 1 });
      else if (good.has(id)) {
        change(id, { lastGoodRunId: one.id });
        open.delete(id);
      }
    }
  }
  if (isCut) for (const id of open) change(id, { isAtLeast: true });
}
