import { groupBy } from '../../core/group-by.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** A run as lists show it. */
export interface RunRow {
  readonly run: CatalogRun;
  /** Nodes that failed with an error, and tests that failed; `null` where nothing is kept of its telemetry. */
  readonly failedCount: number | null;
}

/** Counts the nodes of runs that failed, by what is known of each run at once: no record log is read for it. */
export async function runRows(
  runs: readonly CatalogRun[],
  { catalog, tracker }: Pick<PageDeps, 'catalog' | 'tracker'>,
): Promise<readonly RunRow[]> {
  const [first] = runs;
  if (first === undefined) return [];
  const steps = await catalog.stepsOf(
    first.accountId,
    runs.map(({ id }) => id),
  );
  const ofRun = groupBy(steps, ({ runId }) => runId);
  const rows: RunRow[] = [];
  for (const run of runs) rows.push({ run, failedCount: await failedCountOf(ofRun.get(run.id) ?? [], tracker) });
  return rows;
}

async function failedCountOf(steps: readonly CatalogStep[], tracker: PageDeps['tracker']): Promise<number | null> {
  const ofTrace = groupBy(
    steps.flatMap(({ invocations }) => invocations),
    ({ traceId }) => traceId,
  );
  let count: number | null = null;
  for (const [traceId, own] of ofTrace) {
    const invocations = (await tracker.find(traceId))?.invocations;
    for (const { index } of own) {
      const found = invocations?.find((one) => one.index === index);
      if (found !== undefined) count = (count ?? 0) + found.nodeCounts.error + found.nodeCounts.failed;
    }
  }
  return count;
}
