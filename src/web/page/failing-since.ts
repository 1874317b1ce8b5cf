import type { CatalogRun } from '../../storage/run-catalog.js';
import { RUN_STATUS } from '../../storage/state-tables.js';
import type { PageDeps } from './page-deps.js';

/** Since when something fails. */
export interface FailingSince {
  /** The first run of the row of failures that ends with the shown run; the run itself where it is new. */
  readonly firstRunId: number;
  /** Runs in that row, the shown one included. */
  readonly count: number;
  /** The last run before in which it went well; `null` if none is known. */
  readonly lastGoodRunId: number | null;
  /** Whether the row may have begun earlier. */
  readonly isAtLeast: boolean;
}

/** Earlier runs of the job that are looked at. */
const MAX_EARLIER = 30;

/**
 * Since when nodes fail, by the earlier runs of the same job. Runs in which a node was not worked on say nothing about it.
 * @param uniqueIds of nodes that failed in the run
 * @throws StoreError
 */
export async function failingSince(
  run: CatalogRun,
  uniqueIds: readonly string[],
  { catalog, measures }: Pick<PageDeps, 'catalog' | 'measures'>,
): Promise<ReadonlyMap<string, FailingSince>> {
  const found = new Map<string, FailingSince>(
    uniqueIds.map((id) => [id, { firstRunId: run.id, count: 1, lastGoodRunId: null, isAtLeast: false }]),
  );
  const open = new Set(found.keys());
  if (open.size === 0) return found;
  const { items, totalCount } = await catalog.listRuns(run.accountId, {
    ...{ jobId: run.job.id, createdRange: [0, run.createdUnixMs], statuses: [RUN_STATUS.error, RUN_STATUS.success] },
    ...{ orderBy: 'created', isDescending: true, limit: MAX_EARLIER + 1, offset: 0 },
  });
  const earlier = items.filter(({ id }) => id !== run.id);
  const change = (id: string, part: Partial<FailingSince>) => {
    const known = found.get(id);
    if (known !== undefined) found.set(id, { ...known, ...part });
  };
  for (const one of earlier) {
    if (open.size === 0) return found;
    const digests = await measures.digestsOf(await catalog.stepsOf(run.accountId, [one.id]));
    if (digests === undefined) break;
    const failed = new Set(digests.flatMap((digest) => digest.failed));
    const good = new Set(digests.flatMap((digest) => digest.good));
    for (const id of open) {
      if (failed.has(id)) change(id, { firstRunId: one.id, count: (found.get(id)?.count ?? 0) + 1 });
      else if (good.has(id)) {
        change(id, { lastGoodRunId: one.id });
        open.delete(id);
      }
    }
    if (one === earlier.at(-1) && totalCount <= items.length) return found;
  }
  if (earlier.length > 0) for (const id of open) change(id, { isAtLeast: true });
  return found;
}
