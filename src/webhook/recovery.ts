import { isComparable } from '../api/earlier-runs.js';
import type { RunMeasures } from '../api/run-measures.js';
import { groupBy } from '../core/lists.js';
import { type JudgedRun, type Recovery, recoveryOf } from '../run/measures/recovery.js';
import type { CommandScope } from '../run/measures/run-scope.js';
import { type CatalogRun, type CatalogStep, commandLinesOf, type RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';

/** What recoveries are read from. */
export interface RecoveryDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf'>;
}

/** Earlier runs that are looked at. */
export const MAX_RUNS_BEFORE = 50;

/** A run, and what it is compared by. */
interface ScopedRun {
  readonly run: CatalogRun;
  readonly judged: JudgedRun;
  readonly scopes: readonly CommandScope[];
  /** Unique ids of the nodes that it worked on. */
  readonly nodes: ReadonlySet<string>;
}

/** Reads how much of what had failed before runs has recovered with them. */
export class RecoveryReader {
  constructor(private readonly deps: RecoveryDeps) {}

  /**
   * How much of what had failed in the runs of the same job and environment before a run, of no job those of the same command and
   * target, has recovered with it; `null` where nothing had failed that had not recovered before.
   * @param ofIncident whether what is still open of other projects, commands and targets counts as well: PagerDuty has one
   * incident of a job and environment
   * @throws StoreError, and errors of the reader if a log cannot be read
   */
  async read(accountId: number, runId: number, ofIncident = false): Promise<Recovery | null> {
    const { catalog, measures } = this.deps;
    const run = await catalog.findRun(accountId, runId);
    if (run === undefined) return null;
    const { items } = await catalog.listRuns(accountId, {
      ...{ jobId: run.job.id, environmentId: run.environment.id, createdRange: [0, run.createdUnixMs] },
      statuses: [RUN_STATUS.success, RUN_STATUS.error],
      ...{ orderBy: 'created', isDescending: true, limit: MAX_RUNS_BEFORE + 1, offset: 0 },
    });
    const earlier = items.filter((one) => one.createdUnixMs < run.createdUnixMs || one.id < runId);
    const ids = [runId, ...earlier.map(({ id }) => id)];
    const steps = groupBy(await catalog.stepsOf(accountId, ids), (step) => step.runId);
    const measured = await measures.ofSteps(steps.get(runId) ?? []);
    const nodes = measured.flatMap(({ command }) => command.nodes.map(({ uniqueId }) => uniqueId));
    const own = await this.scoped(run, steps.get(runId) ?? []);
    const before: JudgedRun[] = [];
    const elsewhere: ScopedRun[] = [];
    for (const one of earlier) {
      const other = await this.scoped(one, steps.get(one.id) ?? []);
      if (belongTogether(own, other)) before.push(other.judged);
      else elsewhere.push(other);
    }
    const recovery = recoveryOf(own.judged, new Set(nodes), before);
    const openCount = ofIncident ? openCountOf(elsewhere) : 0;
    if (openCount === 0) return recovery;
    return { count: recovery?.count ?? 0, ofCount: (recovery?.ofCount ?? 0) + openCount };
  }

  private async scoped(run: CatalogRun, steps: readonly CatalogStep[]): Promise<ScopedRun> {
    const { measures } = this.deps;
    let digests = await measures.digestsOf(steps);
    if (digests === undefined) {
      await measures.ofSteps(steps);
      digests = await measures.digestsOf(steps);
    }
    const judged = {
      isSuccess: run.status === RUN_STATUS.success,
      commandLines: commandLinesOf(steps),
      digests: digests?.length === 0 ? undefined : digests,
    };
    const scopes = digests?.map(({ scope }) => scope) ?? [];
    return { run, judged, scopes, nodes: new Set(digests?.flatMap(({ work }) => work.uniqueIds)) };
  }
}

/** Whether one of two runs says something of what failed in the other; of the same project, where not more is known of one. */
function belongTogether(one: ScopedRun, other: ScopedRun): boolean {
  if (one.judged.digests === undefined || other.judged.digests === undefined)
    return one.run.project.id === other.run.project.id;
  return isComparable(one, other);
}

/** How much is still open of what failed in runs of several projects, commands and targets. @param runs the last to start first */
function openCountOf(runs: readonly ScopedRun[]): number {
  const [last, ...others] = runs;
  if (last === undefined) return 0;
  const before = others.filter((one) => belongTogether(last, one)).map(({ judged }) => judged);
  const { isSuccess, digests } = last.judged;
  const recovery = isSuccess ? recoveryOf(last.judged, last.nodes, before) : null;
  const failedCount = isSuccess ? 0 : Math.max(1, digests?.flatMap(({ failed }) => failed).length ?? 0);
  const openCount = recovery === null ? failedCount : recovery.ofCount - recovery.count;
  return openCount + openCountOf(others.filter((one) => !belongTogether(last, one)));
}
