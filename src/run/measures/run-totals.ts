import { quantile } from '../../core/lists.js';
import { countVerdicts, type InvocationSummary, type NodeCounts } from '../verdict.js';
import type { CriticalPath } from './critical-path.js';
import type { HookMeasure, NodeMeasure, PhaseMeasure } from './node-measure.js';
import type { LengthSplit, TimeParts } from './time-split.js';

/** A run's duration compared with earlier runs of its job. All times in milliseconds. */
export interface Comparison {
  readonly totalMs: number;
  /** Earlier runs that it is compared with. */
  readonly count: number;
  readonly medianMs: number;
  /** 95 of 100 earlier runs were not longer. */
  readonly p95Ms: number;
  /** `totalMs` by the median; `null` where the median is 0. */
  readonly ratio: number | null;
  /** Whether it was longer than the 95th percentile. */
  readonly isSlow: boolean;
}

/**
 * Compares a run's length with those of earlier runs of its job.
 * @param earlierMs in any order; which runs these are is the caller's choice, usually those of one job and command that succeeded
 * @returns `null` where there is nothing to compare with
 */
export function compareWithEarlier(totalMs: number, earlierMs: readonly number[]): Comparison | null {
  const medianMs = quantile(earlierMs, 0.5);
  const p95Ms = quantile(earlierMs, 0.95);
  if (medianMs === undefined || p95Ms === undefined) return null;
  const ratio = medianMs === 0 ? null : totalMs / medianMs;
  return { totalMs, count: earlierMs.length, medianMs, p95Ms, ratio, isSlow: totalMs > p95Ms };
}

/** Totals of a command. Sums over nodes add the time of all threads, so they may exceed the command's duration. */
export interface RunTotals {
  /** Latest end (or time) − earliest start among all its records. */
  readonly lengthNano: bigint;
  readonly nodeCount: number;
  /** Nodes by verdict. */
  readonly nodeCounts: NodeCounts;
  /** Skipped nodes for which there was nothing to do (`noop`): the engine counts them apart. */
  readonly noOpCount: number;
  /** Hooks by verdict; the engine counts them with the nodes. */
  readonly hookCounts: NodeCounts;
  /** Tests (data and unit) that ran, by their result. */
  readonly testCounts: Readonly<Record<'passed' | 'warned' | 'failed', number>>;
  /** Sum of NodeProcessed `duration_ms`, in milliseconds. */
  readonly durationMs: number;
  /** Sum of NodeProcessed `idle_time_ms`, in milliseconds. */
  readonly idleTimeMs: number;
  /** Sum of the lengths of all QueryExecuted spans, and of those among them that name no node. */
  readonly warehouseTimeNano: bigint;
  readonly otherWarehouseTimeNano: bigint;
  /** QueryExecuted spans that ended. */
  readonly queryCount: number;
  /** Sum of NodeProcessed `rows_affected` of nodes that are no tests (a test's rows are its query's answer). */
  readonly rows: number;
}

/** Queries that name no node: of hooks, and of the engine itself. */
export interface OtherQueries {
  readonly count: number;
  readonly timeNano: bigint;
}

const TEST_TYPES: ReadonlySet<string | null> = new Set(['test', 'unit_test']);

/** Sums up a command's nodes and hooks. @param lengthNano the command's own length */
export function runTotals(
  nodes: readonly NodeMeasure[],
  hooks: readonly HookMeasure[],
  other: OtherQueries,
  lengthNano: bigint,
): RunTotals {
  const testCounts = { passed: 0, warned: 0, failed: 0 };
  const sums = { durationMs: 0, idleTimeMs: 0, queryCount: other.count, rows: 0 };
  let warehouseTimeNano = other.timeNano;
  for (const node of nodes) {
    if (node.testOutcome !== null) testCounts[node.testOutcome] += 1;
    sums.durationMs += node.durationMs ?? 0;
    sums.idleTimeMs += node.idleTimeMs ?? 0;
    sums.queryCount += node.queryCount;
    if (!TEST_TYPES.has(node.nodeType)) sums.rows += node.rows ?? 0;
    warehouseTimeNano += node.warehouseTimeNano;
  }
  const otherWarehouseTimeNano = other.timeNano;
  return {
    lengthNano,
    nodeCount: nodes.length,
    nodeCounts: countVerdicts(nodes),
    noOpCount: nodes.filter(({ verdict, skipReason }) => verdict === 'skipped' && skipReason === 'noop').length,
    hookCounts: countVerdicts(hooks),
    testCounts,
    ...sums,
    warehouseTimeNano,
    otherWarehouseTimeNano,
  };
}

/** When the queries of nodes ran: the n-th query is that of `uniqueIds[nodes[n]]`. Times are milliseconds since the command's start. */
export interface QueryTimes {
  readonly uniqueIds: readonly string[];
  readonly nodes: Int32Array;
  readonly startsMs: Float64Array;
  readonly endsMs: Float64Array;
}

/** All measures of one command of a run. */
export interface CommandMeasures {
  readonly invocation: InvocationSummary;
  /** The target of its profile, as its invocation span has it (`eval_args.target`); `null` where it has none. */
  readonly target: string | null;
  readonly totals: RunTotals;
  readonly split: LengthSplit;
  readonly timeParts: TimeParts;
  /** In the order in which they began. */
  readonly phases: readonly PhaseMeasure[];
  readonly criticalPath: CriticalPath;
  /** Those that the command was asked for, in the order in which they began; the first 100,000. */
  readonly nodes: readonly NodeMeasure[];
  /** Nodes that were processed without being selected and did not fail: in none of the counts. */
  readonly unselectedNodes: readonly NodeMeasure[];
  /** In the order in which they began. */
  readonly hooks: readonly HookMeasure[];
  readonly queryTimes: QueryTimes;
  /** Nodes beyond the first 100,000, of which nothing is measured. */
  readonly omittedNodeCount: number;
  /** First log records of severity ERROR that name no node, at most 20 of at most 4,000 characters each. */
  readonly messages: readonly string[];
}
