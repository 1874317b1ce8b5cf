import { isComparable } from '../api/earlier-runs.js';
import type { RunMeasures } from '../api/run-measures.js';
import { groupBy } from '../core/lists.js';
import { type JudgedRun, type Recovery, recoveryOf } from '../run/measures/recovery.js';
import { type CatalogRun, type CatalogStep, commandLinesOf, type RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';

/** What recoveries are read from. */
export interface RecoveryDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf'>;
}

/** Earlier runs that are looked at. */
export const MAX_RUNS_BEFORE = 20;

/** Reads how much of what had failed before runs has recovered with them. */
export class RecoveryReader {
  constructor(private readonly deps: RecoveryDeps) {}

  /**
   * How much of what had failed in the runs of the same job and environment before a run, of no job those of the same command and
   * target, has recovered with it; `null` where nothing had failed that had not recovered before.
   * @throws StoreError, and errors of the reader if a log cannot be read
   */
  async read(accountId: number, runId: number): Promise<Recovery | null> {
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
    const own = await this.judged(run, steps.get(runId) ?? []);
    const before: JudgedRun[] = [];
    for (const one of earlier) {
      const theirs = await this.judged(one, steps.get(one.id) ?? []);
      const isKnown = own.digests !== undefined && theirs.digests !== undefined;
      if (!isKnown || isComparable({ run, scopes: own.scopes }, { run: one, scopes: theirs.scopes }))
        before.push(theirs);
    }
    return recoveryOf(own, new Set(nodes), before);
  }

  private async judged(run: CatalogRun, steps: readonly CatalogStep[]) {
    const { measures } = this.deps;
    let digests = await measures.digestsOf(steps);
    if (digests === undefined) {
      await measures.ofSteps(steps);
      digests = await measures.digestsOf(steps);
    }
    const isSuccess = run.status === RUN_STATUS.success;
    const scopes = digests?.map(({ scope }) => scope) ?? [];
    return {
      isSuccess,
      commandLines: commandLinesOf(steps),
      digests: digests?.length === 0 ? undefined : digests,
      scopes,
    };
  }
}
