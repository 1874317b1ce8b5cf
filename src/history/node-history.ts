import { quantile } from '../core/lists.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import { executesNodes, isBad } from '../run/measures/execution.js';
import type { CommandScope } from '../run/measures/run-scope.js';
import type { NodeVerdict } from '../run/verdict.js';
import type { CatalogRun, NamedThing } from '../storage/run-catalog.js';
import { DEFAULT_JOB } from '../storage/steps.js';

/** How a node did in one run. */
export interface NodeRun {
  readonly run: CatalogRun;
  readonly startedUnixMs: number;
  readonly verdict: NodeVerdict;
  /** Whether it was executed, to an outcome; an interruption says nothing of it. */
  readonly isExecuted: boolean;
  /** What of the command's length fell to it, in milliseconds. */
  readonly shareMs: number;
  readonly warehouseMs: number;
  readonly rows: number | null;
}

/** A model or test over the runs of one job that were looked at; of runs of no job, those of one command and target. */
export interface NodeHistory {
  readonly uniqueId: string;
  /** `nightly`, or `build, target prod` of runs of no job. */
  readonly scope: string;
  /** Whether it has a history in another job, command or target as well. */
  readonly isOneOfSeveral: boolean;
  /** `model orders` */
  readonly label: string;
  readonly isTest: boolean;
  /** Those that executed it, and those in which it was interrupted, the last first. */
  readonly runs: readonly NodeRun[];
  /** How often in a row it has failed until now. */
  readonly failuresInARow: number;
  readonly failureCount: number;
  /** Whether it has failed and gone well among the last runs more than once in turn. */
  readonly isFlaky: boolean;
  /** Median of what of the last commands' lengths fell to it, in milliseconds; `null` where there is none. */
  readonly usualMs: number | null;
  /** By how much its median has grown from the older half of the runs to the newer; `null` of too few. */
  readonly grownMs: number | null;
  /** Rows that it affected when it last went well; `null` where the engine says none. */
  readonly rows: number | null;
  /** Time of its queries in the last 30 days, in milliseconds, of whatever command. */
  readonly warehouseMs: number;
  /** When it was last executed in its project, in whichever job; 0 if never. */
  readonly lastUnixMs: number;
}

/** What the queries of a job's runs took in the last 30 days. */
export interface JobCost {
  readonly job: NamedThing;
  readonly runCount: number;
  readonly warehouseMs: number;
}

/** What the page is made of. */
export interface Histories {
  readonly nodes: readonly NodeHistory[];
  /** The dearest first. */
  readonly jobs: readonly JobCost[];
  /** Runs that were looked at, and the start of the first of them; `null` where there is none. */
  readonly runCount: number;
  readonly sinceUnixMs: number | null;
}

/** Time for which costs are summed up, and after which a node counts as not run, in milliseconds. */
export const WINDOW_MS = 30 * 86_400_000;
/** Runs that say whether a test is flaky, and durations that say how long a node usually takes. */
const RECENT = 20;
/** Of fewer durations none is said to grow. */
const MIN_TIMED = 6;

/** Puts together what is known of nodes from runs. @param runs the last first, with the digests of their commands */
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
      const place = placeOf(run, scope);
      runMs += work.otherWarehouseMs;
      for (const [at, uniqueId] of work.uniqueIds.entries()) {
        const [verdict, label] = [work.verdicts[at], work.labels[at]];
        if (verdict === undefined || label === undefined) continue;
        const warehouseMs = work.warehouseMs[at] ?? 0;
        runMs += warehouseMs;
        const isExecuted = work.executed[at] ?? false;
        const isGood = verdict === 'success' || verdict === 'warned';
        // What was only compiled or shown has cost what its queries took, and says nothing else.
        const isListed = isExecuted || (executesNodes(scope.command) && !isGood);
        if (!isListed && warehouseMs === 0) continue;
        const key = JSON.stringify([run.project.id, place, uniqueId]);
        const known = nodes.get(key) ?? newSeries(uniqueId, label, place.at(-1) ?? '', run);
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
  /** Names it in its project. */
  readonly projectKey: string;
  readonly runs: NodeRun[];
  warehouseMs: number;
}

function newSeries(uniqueId: string, label: string, scope: string, { project }: CatalogRun): Series {
  const isTest = /^(?:unit_)?test\./.test(uniqueId);
  return { uniqueId, scope, label, isTest, projectKey: `${project.id} ${uniqueId}`, runs: [], warehouseMs: 0 };
}

/** What runs have in common whose nodes may be compared; its last text is for people. */
function placeOf({ job }: CatalogRun, { command, target }: CommandScope): readonly string[] {
  if (job.name !== DEFAULT_JOB) return [String(job.id), job.name];
  return [String(job.id), `${command ?? 'unknown command'}${target === null ? '' : `, target ${target}`}`];
}

/** Lists of numbers have `NaN` for what is not known. */
function numberOf(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function summed(runs: readonly NodeRun[]) {
  // An interruption says neither.
  const judged = runs.filter(({ isExecuted }) => isExecuted);
  const firstGood = judged.findIndex(({ verdict }) => !isBad(verdict));
  const recent = judged.slice(0, RECENT).map(({ verdict }) => isBad(verdict));
  const turns = recent.filter((bad, at) => at > 0 && bad !== recent[at - 1]).length;
  const good = judged.filter(({ verdict }) => !isBad(verdict));
  const timed = good.map(({ shareMs }) => shareMs).slice(0, 2 * RECENT);
  const half = Math.floor(timed.length / 2);
  const [newer, older] = [median(timed.slice(0, half)), median(timed.slice(half))];
  return {
    failuresInARow: firstGood === -1 ? judged.length : firstGood,
    failureCount: judged.filter(({ verdict }) => isBad(verdict)).length,
    isFlaky: turns >= 2,
    usualMs: median(timed.slice(0, RECENT)) ?? null,
    grownMs: timed.length < MIN_TIMED || newer === undefined || older === undefined ? null : newer - older,
    rows: good.find(({ rows }) => rows !== null)?.rows ?? null,
  };
}

function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}
