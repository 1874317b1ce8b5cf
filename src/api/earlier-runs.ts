import { groupBy } from '../core/lists.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import { hasSameCommands } from '../run/measures/recovery.js';
import { type CommandScope, isSameProject, scopeKey } from '../run/measures/run-scope.js';
import { type CatalogRun, commandLinesByRun, type RunCatalog, type RunQuery } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { DEFAULT_JOB } from '../storage/steps.js';
import type { RunMeasures } from './run-measures.js';

/** What earlier runs are found with. */
export interface EarlierRunsDeps {
  readonly catalog: Pick<RunCatalog, 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'digestsOf' | 'ofSteps'>;
}

/** An earlier run; `digests` is `undefined` where it is not measured yet, and what it worked on is not known. */
export interface EarlierRun {
  readonly run: CatalogRun;
  readonly digests: readonly CommandDigest[] | undefined;
}

/** Which earlier runs. */
export interface EarlierQuery extends Pick<RunQuery, 'statuses'> {
  /** Runs of the job that are looked at. */
  readonly limit: number;
  /** Whether runs that nobody has looked at are measured now; else they are in the background. */
  readonly measuresNow?: boolean;
}

/**
 * Returns whether two runs may be compared: they are of one project and one job; those of no job are of the same commands and targets.
 * @param scopes what their commands worked on
 */
export function isComparable(
  one: { readonly run: CatalogRun; readonly scopes: readonly CommandScope[] },
  other: { readonly run: CatalogRun; readonly scopes: readonly CommandScope[] },
): boolean {
  if (one.run.job.id !== other.run.job.id || one.run.project.id !== other.run.project.id) return false;
  if (!isSameProject(one.scopes, other.scopes)) return false;
  return one.run.job.name !== DEFAULT_JOB || scopeKey(one.scopes) === scopeKey(other.scopes);
}

/**
 * Lists the runs that began before a run and that it may be compared with, the last to start first, whichever were registered or
 * imported first.
 * @param scopes what the commands of the run worked on
 * @returns them, and whether there are older ones that were not looked at
 * @throws StoreError, and errors of the reader where runs are measured now
 */
export async function earlierRuns(
  run: CatalogRun,
  scopes: readonly CommandScope[],
  { limit, statuses, measuresNow = false }: EarlierQuery,
  { catalog, measures }: EarlierRunsDeps,
): Promise<{ readonly runs: AsyncIterable<EarlierRun>; readonly hasMore: boolean }> {
  const { items, totalCount } = await catalog.listRuns(run.accountId, {
    ...{ jobId: run.job.id, projectIds: [run.project.id], createdRange: [0, run.createdUnixMs] },
    ...(statuses !== undefined && { statuses }),
    ...{ orderBy: 'created', isDescending: true, limit: limit + 1, offset: 0 },
  });
  const earlier = items.filter(({ id }) => id !== run.id);
  const ids = earlier.map(({ id }) => id);
  const steps = groupBy(await catalog.stepsOf(run.accountId, ids), ({ runId }) => runId);
  async function* comparable(): AsyncGenerator<EarlierRun> {
    for (const one of earlier) {
      const ofRun = steps.get(one.id) ?? [];
      let digests = await measures.digestsOf(ofRun);
      if (digests === undefined && measuresNow) {
        await measures.ofSteps(ofRun);
        digests = await measures.digestsOf(ofRun);
      }
      const theirs = { run: one, scopes: digests?.map(({ scope }) => scope) ?? [] };
      if (digests === undefined || isComparable({ run, scopes }, theirs)) yield { run: one, digests };
    }
  }
  return { runs: comparable(), hasMore: totalCount > items.length };
}

/** The most runs of a job among which one to compare with is looked for. */
const MAX_COMPARED = 30;

/**
 * Finds the last run before one that it may be compared with and that has a command in common with it, one with nodes where there
 * is one; `null` if there is none.
 * @throws StoreError, and errors of the reader where runs are measured now
 */
export async function lastRunBefore(
  { run, scopes }: { readonly run: CatalogRun; readonly scopes: readonly CommandScope[] },
  query: Pick<EarlierQuery, 'statuses' | 'measuresNow'>,
  deps: EarlierRunsDeps,
): Promise<CatalogRun | null> {
  const { runs } = await earlierRuns(run, scopes, { limit: MAX_COMPARED, ...query }, deps);
  return await firstWithNodes(runs, scopes);
}

/** Of runs that ended before their first node there is nothing to compare, if there is another. */
async function firstWithNodes(
  runs: AsyncIterable<Pick<EarlierRun, 'run' | 'digests'>>,
  scopes: readonly CommandScope[],
): Promise<CatalogRun | null> {
  let first: CatalogRun | null = null;
  for await (const { run, digests } of runs) {
    if (!hasCommandOf(scopes, digests)) continue;
    if (digests?.some(({ work }) => work.uniqueIds.length > 0)) return run;
    first ??= run;
  }
  return first;
}

/**
 * Finds the last good run of a job by its name, of a project with the same packages and with a command in common; `null` if there is none.
 * @param scopes what the commands worked on that it is compared with
 * @param before the run that is not later than it, and not the one; any where left out
 * @throws StoreError
 */
export async function lastGoodRunOf(
  jobName: string,
  {
    accountId,
    scopes,
    before,
  }: { readonly accountId: number; readonly scopes: readonly CommandScope[]; readonly before: CatalogRun | undefined },
  { catalog, measures }: EarlierRunsDeps,
): Promise<CatalogRun | null> {
  const { items } = await catalog.listRuns(accountId, {
    ...{ jobName, statuses: [RUN_STATUS.success] },
    ...(before !== undefined && { createdRange: [0, before.createdUnixMs] as const }),
    ...{ orderBy: 'created', isDescending: true, limit: MAX_COMPARED, offset: 0 },
  });
  const ofProject = async function* () {
    for (const run of items) {
      if (run.id === before?.id) continue;
      const digests = await measures.digestsOf(await catalog.stepsOf(accountId, [run.id]));
      if (isSameProject(scopes, digests?.map(({ scope }) => scope) ?? [])) yield { run, digests };
    }
  };
  return await firstWithNodes(ofProject(), scopes);
}

/** Whether a run has a command in common with another: a `compile` cannot be compared with a `build`. */
function hasCommandOf(scopes: readonly CommandScope[], digests: EarlierRun['digests']): boolean {
  if (digests === undefined) return false;
  return scopes.length === 0 || digests.some((one) => scopes.some(({ command }) => command === one.scope.command));
}

/** The most of a job's last runs that are looked at for their durations. */
const MAX_HISTORY = 20;

/** Returns for each run the latest ended runs up to it whose durations are comparable, newest first: those of its job and project, or without a job those of the same commands. */
export async function lastRunsOf(
  runs: readonly CatalogRun[],
  { catalog }: Pick<EarlierRunsDeps, 'catalog'>,
): Promise<(run: CatalogRun) => readonly CatalogRun[]> {
  const found = new Map<string, readonly CatalogRun[]>();
  const keyOf = ({ job, project }: CatalogRun) => `${job.id} ${project.id}`;
  for (const run of runs) {
    if (found.has(keyOf(run))) continue;
    const { items } = await catalog.listRuns(run.accountId, {
      ...{ jobId: run.job.id, projectIds: [run.project.id], statuses: [RUN_STATUS.success, RUN_STATUS.error] },
      ...{ orderBy: 'created', isDescending: true, limit: MAX_HISTORY, offset: 0 },
    });
    found.set(keyOf(run), items);
  }
  const ofNoJob = [...runs, ...[...found.values()].flat()].filter(({ job }) => job.name === DEFAULT_JOB);
  const ids = ofNoJob.map(({ id }) => id);
  // All runs belong to one account; without runs there is nothing to read.
  const commandLines = await commandLinesByRun(catalog, ofNoJob[0]?.accountId ?? 0, ids);
  const asked = ({ id }: CatalogRun) => ({ commandLines: commandLines(id) });
  return (run) =>
    (found.get(keyOf(run)) ?? []).filter(
      (one) =>
        one.createdUnixMs <= run.createdUnixMs &&
        (run.job.name !== DEFAULT_JOB || hasSameCommands(asked(one), asked(run))),
    );
}
