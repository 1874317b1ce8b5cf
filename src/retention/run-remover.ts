import type { RunFinder } from '../api/native/run-finder.js';
import { reasonOf } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import type { RetainedSize, RetentionStore, RunGroup } from '../storage/retention-store.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import { isFinal } from '../storage/state-tables.js';
import type { Removals } from './removals.js';
import type { RetainedTelemetry } from './retained-kinds.js';

/** Dependencies of the remover. */
export interface RunRemoverDeps {
  readonly finder: Pick<RunFinder, 'find'>;
  readonly store: Pick<RetentionStore, 'groupOf'>;
  readonly telemetry: Pick<RetainedTelemetry, 'measure' | 'hide'>;
  readonly removals: Pick<Removals, 'end'>;
  /** The names of the configured destinations; runs that one of them has not received yet are kept. */
  readonly destinations: readonly string[];
  readonly logger: Logger;
}

/** A run to remove, and what is removed with it. */
export interface RemovableRun {
  readonly run: CatalogRun;
  /** The numbers of runs with records in the same traces, which are removed with it. */
  readonly sharedRunIds: readonly number[];
  /** Why it cannot be removed; `null` if it can. */
  readonly problem: string | null;
  /** The size of what is removed; `null` if it cannot be removed. */
  readonly size: RetainedSize | null;
}

/** A run cannot be removed; the message says why, and what to do. */
export class RunRemovalError extends Error {
  override readonly name = 'RunRemovalError';
}

/** Removes single runs in the same way as retention: first the rows, with a record of the files, so that an interrupted removal is finished later. */
export class RunRemover {
  constructor(private readonly deps: RunRemoverDeps) {}

  /**
   * Returns what removing a run would remove.
   * @param name the run's number, or a trace or invocation id of one of its commands
   * @throws ApiError 404; StoreError
   */
  async look(accountId: number, name: string): Promise<RemovableRun> {
    const { run, group, problem } = await this.find(accountId, name);
    const sharedRunIds = (group?.runIds ?? []).filter((id) => id !== run.id);
    const size = problem === null && group !== undefined ? await this.deps.telemetry.measure(group) : null;
    return { run, sharedRunIds, problem, size };
  }

  /**
   * Removes a run with all its data. If a bucket cannot be reached, files stay there for a while, but nobody finds them.
   * @param isWithShared whether runs that share its traces may be removed with it
   * @returns the numbers of the removed runs
   * @throws ApiError 404; RunRemovalError; StoreError
   */
  async remove(accountId: number, name: string, isWithShared: boolean): Promise<readonly number[]> {
    const { run, group, problem } = await this.find(accountId, name);
    if (group === undefined || problem !== null) throw new RunRemovalError(problem ?? tooLarge(run));
    if (group.runIds.length > 1 && !isWithShared) throw new RunRemovalError(shared(run, group));
    const removals = await this.deps.telemetry.hide(group);
    if (removals.length === 0) {
      throw new RunRemovalError(
        `Run ${run.id} has just changed: records of it are arriving. Try again in a few seconds.`,
      );
    }
    for (const removal of removals) {
      try {
        await this.deps.removals.end(removal);
      } catch (error) {
        const fields = { runId: run.id, kind: removal.kind, error: reasonOf(error) };
        this.deps.logger.warn(fields, 'failed to remove the files of a deleted run; the next start does');
      }
    }
    return group.runIds;
  }

  private async find(accountId: number, name: string) {
    const { finder, store, destinations } = this.deps;
    const { run } = await finder.find(accountId, name);
    const group = await store.groupOf(run.id, destinations);
    return { run, group, problem: await this.problemOf(accountId, run, group) };
  }

  private async problemOf(accountId: number, run: CatalogRun, group: RunGroup | undefined): Promise<string | null> {
    if (!isFinal(run.status)) return `Run ${run.id} is still going on: cancel it, or wait until it has ended.`;
    if (group === undefined) return tooLarge(run);
    if (group.isLive) {
      return `Run ${run.id} is not settled: records of it, or of a run that shares its trace, are still expected. Try again in a minute.`;
    }
    if (group.isPending) {
      return `A destination has not got all of run ${run.id} yet: wait until it has, or take that destination out of the configuration.`;
    }
    for (const id of group.runIds) {
      const isInAccount = await this.deps.finder.find(accountId, String(id)).then(
        () => true,
        () => false,
      );
      if (!isInAccount)
        return `Run ${run.id} shares its trace with a run of another account: both go by retention alone.`;
    }
    return null;
  }
}

function tooLarge({ id }: CatalogRun): string {
  return `Run ${id} shares its trace with more runs than can be removed at a time: they go by retention alone.`;
}

function shared({ id }: CatalogRun, { runIds }: RunGroup): string {
  const others = runIds.filter((one) => one !== id);
  const named = others.slice(0, 10).join(', ') + (others.length > 10 ? ` and ${others.length - 10} more` : '');
  const noun = others.length === 1 ? 'run' : 'runs';
  return `Run ${id} shares its trace with ${noun} ${named}, and a trace is removed as a whole. To remove all of them, add with_shared=true, or --with-shared on the command line.`;
}
