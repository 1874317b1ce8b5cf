import { quantile } from '../core/lists.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import type { NodeVerdict } from '../run/verdict.js';
import type { CatalogRun, NamedThing } from '../storage/run-catalog.js';

/** How a node did in one run. */
export interface NodeRun {
  readonly run: CatalogRun;
  readonly startedUnixMs: number;
  readonly verdict: NodeVerdict;
  /** In milliseconds; `null` where the engine gives none. */
  readonly durationMs: number | null;
  readonly warehouseMs: number;
  readonly rows: number | null;
}

/** A model or test over the runs that were looked at. */
export interface NodeHistory {
  readonly uniqueId: string;
  /** `model orders` */
  readonly label: string;
  readonly isTest: boolean;
  /** Those in which it was worked on, the last first. */
  readonly runs: readonly NodeRun[];
  /** How often in a row it has failed until now. */
  readonly failuresInARow: number;
  readonly failureCount: number;
  /** Whether it has failed and gone well among the last runs more than once in turn. */
  readonly isFlaky: boolean;
  /** Median of its last durations, in milliseconds; `null` where there is none. */
  readonly usualMs: number | null;
  /** By how much its median has grown from the older half of the runs to the newer; `null` of too few. */
  readonly grownMs: number | null;
  /** Rows that it affected when it last went well; `null` where the engine says none. */
  readonly rows: number | null;
  /** Time of its queries in the last 30 days, in milliseconds. */
  readonly warehouseMs: number;
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
  const nodes = new Map<string, { label: string; isTest: boolean; runs: NodeRun[] }>();
  const jobs = new Map<number, { job: NamedThing; runCount: number; warehouseMs: number }>();
  for (const { run, digests } of runs) {
    const startedUnixMs = run.startedUnixMs ?? run.createdUnixMs;
    let runMs = 0;
    for (const { work } of digests) {
      runMs += work.otherWarehouseMs;
      for (const [at, uniqueId] of work.uniqueIds.entries()) {
        const [verdict, label] = [work.verdicts[at], work.labels[at]];
        if (verdict === undefined || label === undefined) continue;
        const known = nodes.get(uniqueId) ?? { label, isTest: /^(?:unit_)?test\./.test(uniqueId), runs: [] };
        nodes.set(uniqueId, known);
        const warehouseMs = work.warehouseMs[at] ?? 0;
        runMs += warehouseMs;
        known.runs.push({
          ...{ run, startedUnixMs, verdict, warehouseMs },
          ...{ durationMs: numberOf(work.durationsMs[at]), rows: numberOf(work.rows[at]) },
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
    nodes: [...nodes].map(([uniqueId, node]) => ({ uniqueId, ...node, ...summed(node.runs, nowUnixMs) })),
    jobs: [...jobs.values()].sort((a, b) => b.warehouseMs - a.warehouseMs),
    runCount: runs.length,
    sinceUnixMs: oldest === undefined ? null : (oldest.startedUnixMs ?? oldest.createdUnixMs),
  };
}

/** Lists of numbers have `NaN` for what is not known. */
function numberOf(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function summed(runs: readonly NodeRun[], nowUnixMs: number) {
  // An interruption says neither.
  const judged = runs.filter(({ verdict }) => verdict !== 'canceled');
  const firstGood = judged.findIndex(({ verdict }) => !isBad(verdict));
  const recent = judged.slice(0, RECENT).map(({ verdict }) => isBad(verdict));
  const turns = recent.filter((bad, at) => at > 0 && bad !== recent[at - 1]).length;
  const good = judged.filter(({ verdict }) => !isBad(verdict));
  const timed = good.flatMap(({ durationMs }) => durationMs ?? []).slice(0, 2 * RECENT);
  const half = Math.floor(timed.length / 2);
  const [newer, older] = [median(timed.slice(0, half)), median(timed.slice(half))];
  return {
    failuresInARow: firstGood === -1 ? judged.length : firstGood,
    failureCount: runs.filter(({ verdict }) => isBad(verdict)).length,
    isFlaky: turns >= 2,
    usualMs: median(timed.slice(0, RECENT)) ?? null,
    grownMs: timed.length < MIN_TIMED || newer === undefined || older === undefined ? null : newer - older,
    rows: good.find(({ rows }) => rows !== null)?.rows ?? null,
    warehouseMs: runs
      .filter(({ startedUnixMs }) => startedUnixMs >= nowUnixMs - WINDOW_MS)
      .reduce((sum, { warehouseMs }) => sum + warehouseMs, 0),
  };
}

function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}

/** Whether a verdict is a failure. */
export function isBad(verdict: NodeVerdict): boolean {
  return verdict === 'error' || verdict === 'failed';
}
