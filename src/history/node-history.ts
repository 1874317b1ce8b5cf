import { quantile } from '../core/lists.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import { executesNodes, isBad } from '../run/measures/execution.js';
import type { CommandScope } from '../run/measures/run-scope.js';
import type { NodeVerdict } from '../run/verdict.js';
import { isTestId } from '../storage/manifest.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import type { NamedThing } from '../storage/scope-catalog.js';
import { DEFAULT_JOB } from '../storage/steps.js';

/** The result of a node in one run. */
export interface NodeRun {
  readonly run: CatalogRun;
  readonly startedUnixMs: number;
  readonly verdict: NodeVerdict;
  /** Whether it was executed and has an outcome; false if it was interrupted. */
  readonly isExecuted: boolean;
  /** Its share of the command's duration, in milliseconds. */
  readonly shareMs: number;
  readonly warehouseMs: number;
  readonly rows: number | null;
}

/** The history of a model or test over the latest runs of a job; for runs without a job, over those of one command and target. */
export interface NodeHistory {
  readonly uniqueId: string;
  /** The job's name, for example `nightly`, or `build, target prod` for runs without a job. */
  readonly scope: string;
  /** Whether it also has a history in another job, command or target. */
  readonly isOneOfSeveral: boolean;
  /** The label, for example `model orders`. */
  readonly label: string;
  readonly isTest: boolean;
  /** The runs that executed it, and those in which it was interrupted, the latest first. */
  readonly runs: readonly NodeRun[];
  /** The number of consecutive failures up to now. */
  readonly failuresInARow: number;
  readonly failureCount: number;
  /** Whether it changed between failure and success more than once among the latest runs. */
  readonly isFlaky: boolean;
  /** The median of its share of the latest commands' durations, in milliseconds; `null` if there is none. */
  readonly usualMs: number | null;
  /** The growth of its median from the older half of the runs to the newer, in milliseconds; `null` for too few runs. */
  readonly grownMs: number | null;
  /** The rows that it affected in its last success; `null` if the engine does not report them. */
  readonly rows: number | null;
  /** The time of its queries in the last 30 days, in milliseconds, in all commands. */
  readonly warehouseMs: number;
  /** When it was last executed in its project, in any job; 0 if never. */
  readonly lastUnixMs: number;
}

/** The time of the queries of a job's runs in the last 30 days. */
export interface JobCost {
  readonly job: NamedThing;
  readonly runCount: number;
  readonly warehouseMs: number;
}

/** The data of the page. */
export interface Histories {
  readonly nodes: readonly NodeHistory[];
  /** The most expensive first. */
  readonly jobs: readonly JobCost[];
  /** The number of runs that were read, and the start of the earliest; `null` if there is none. */
  readonly runCount: number;
  readonly sinceUnixMs: number | null;
}

/** The period for which costs are summed, and after which a node counts as not run, in milliseconds. */
export const WINDOW_MS = 30 * 86_400_000;
/** The number of runs that decide whether a test is flaky, and of durations that decide how long a node usually takes. */
const RECENT = 20;
/** With fewer durations, no growth is computed. */
const MIN_TIMED = 6;

/** Computes the histories of nodes from runs. @param runs the latest first, with the digests of their commands */
export function historiesOf(
  runs: readonly { readonly run: CatalogRun; readonly digests: readonly CommandDigest[] }[],
  nowUnixMs: number,
): Histories {
  const nodes = new Map<string, Series>();
  const last = new Map<string, { lastUnixMs: number; scopes: Set<string> }>();
  const jobs = new Map<number, { job: NamedThing; runCount: number; warehouseMs: number }>();
  for (const { run, digests } of runs) {
    const startedUnixMs = run.startedUnixMs ?? run.createdUnixMs;
    let runMs = 0;
    for (const { work, scope } of digests) {
      const comparisonKey = comparisonKeyOf(run, scope);
      runMs += work.otherWarehouseMs;
      for (const [at, uniqueId] of work.uniqueIds.entries()) {
        const [verdict, label] = [work.verdicts[at], work.labels[at]];
        if (verdict === undefined || label === undefined) continue;
        const warehouseMs = work.warehouseMs[at] ?? 0;
        runMs += warehouseMs;
        const isExecuted = work.executed[at] ?? false;
        const isGood = verdict === 'success' || verdict === 'warned';
        // A node that was only compiled or shown has the cost of its queries, and no other result.
        const isListed = isExecuted || (executesNodes(scope.command) && !isGood);
        if (!isListed && warehouseMs === 0) continue;
        const key = JSON.stringify([run.project.id, comparisonKey, uniqueId]);
        const known = nodes.get(key) ?? newSeries(uniqueId, label, comparisonKey.at(-1) ?? '', run);
        nodes.set(key, known);
        if (startedUnixMs >= nowUnixMs - WINDOW_MS) known.warehouseMs += warehouseMs;
        if (!isListed) continue;
        const inProject = last.get(known.projectKey) ?? { lastUnixMs: 0, scopes: new Set() };
        last.set(known.projectKey, inProject);
        inProject.scopes.add(known.scope);
        inProject.lastUnixMs = Math.max(inProject.lastUnixMs, startedUnixMs);
        known.runs.push({
          ...{ run, startedUnixMs, verdict, isExecuted, warehouseMs },
          ...{ shareMs: work.sharesMs[at] ?? 0, rows: numberOf(work.rows[at]) },
        });
      }
    }
    if (startedUnixMs < nowUnixMs - WINDOW_MS) continue;
    const cost = jobs.get(run.job.id) ?? { job: run.job, runCount: 0, warehouseMs: 0 };
    jobs.set(run.job.id, cost);
    cost.runCount += 1;
    cost.warehouseMs += runMs;
  }
  const oldest = runs.at(-1)?.run;
  return {
    nodes: [...nodes.values()].map(({ projectKey, ...node }) => {
      const { lastUnixMs = 0, scopes = new Set() } = last.get(projectKey) ?? {};
      return { ...node, ...summed(node.runs), lastUnixMs, isOneOfSeveral: scopes.size > 1 };
    }),
    jobs: [...jobs.values()].sort((a, b) => b.warehouseMs - a.warehouseMs),
    runCount: runs.length,
    sinceUnixMs: oldest === undefined ? null : (oldest.startedUnixMs ?? oldest.createdUnixMs),
  };
}

/** A model or test in one scope, while runs are added. */
interface Series extends Pick<NodeHistory, 'uniqueId' | 'scope' | 'label' | 'isTest'> {
  /** Identifies it in its project. */
  readonly projectKey: string;
  readonly runs: NodeRun[];
  warehouseMs: number;
}

function newSeries(uniqueId: string, label: string, scope: string, { project }: CatalogRun): Series {
  const isTest = isTestId(uniqueId);
  return { uniqueId, scope, label, isTest, projectKey: `${project.id} ${uniqueId}`, runs: [], warehouseMs: 0 };
}

/** Returns a key of runs whose nodes may be compared; its last text is for people. */
function comparisonKeyOf({ job }: CatalogRun, { command, target }: CommandScope): readonly string[] {
  if (job.name !== DEFAULT_JOB) return [String(job.id), job.name];
  return [String(job.id), `${command ?? 'unknown command'}${target === null ? '' : `, target ${target}`}`];
}

/** Converts an item of a list of numbers, in which `NaN` stands for unknown. */
function numberOf(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function summed(runs: readonly NodeRun[]) {
  // Interrupted runs count neither as success nor as failure.
  const judged = runs.filter(({ isExecuted }) => isExecuted);
  const firstGood = judged.findIndex(({ verdict }) => !isBad(verdict));
  const recent = judged.slice(0, RECENT).map(({ verdict }) => isBad(verdict));
  const changes = recent.filter((bad, at) => at > 0 && bad !== recent[at - 1]).length;
  const good = judged.filter(({ verdict }) => !isBad(verdict));
  const timed = good.map(({ shareMs }) => shareMs).slice(0, 2 * RECENT);
  const half = Math.floor(timed.length / 2);
  const [newer, older] = [median(timed.slice(0, half)), median(timed.slice(half))];
  return {
    failuresInARow: firstGood === -1 ? judged.length : firstGood,
    failureCount: judged.filter(({ verdict }) => isBad(verdict)).length,
    isFlaky: changes >= 2,
    usualMs: median(timed.slice(0, RECENT)) ?? null,
    grownMs: timed.length < MIN_TIMED || newer === undefined || older === undefined ? null : newer - older,
    rows: good.find(({ rows }) => rows !== null)?.rows ?? null,
  };
}

function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}
