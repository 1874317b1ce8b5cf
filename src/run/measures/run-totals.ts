import type { InvocationSummary, NodeCounts } from '../run-summary.js';
import { countVerdicts } from '../verdict.js';
import type { CriticalPath } from './critical-path.js';
import type { HookMeasure, NodeMeasure } from './node-measure.js';
import type { PhaseMeasure } from './phase-measure.js';
import { type LengthSplit, shareOf } from './time-split.js';

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

/**
 * The nodes without which the command would have been shortest: by what of its length fell to them, longest first; those of
 * equal length by their ids. Nodes to which nothing fell are left out.
 */
export function slowestNodes(nodes: readonly NodeMeasure[], limit: number): readonly NodeMeasure[] {
  return nodes
    .map((node) => ({ node, nano: shareOf(node.share) }))
    .filter(({ nano }) => nano > 0n)
    .sort((a, b) => Number(b.nano - a.nano) || (a.node.uniqueId < b.node.uniqueId ? -1 : 1))
    .slice(0, limit)
    .map(({ node }) => node);
}

/** All measures of one command of a run. */
export interface CommandMeasures {
  readonly invocation: InvocationSummary;
  readonly totals: RunTotals;
  readonly split: LengthSplit;
  /** In the order in which they began. */
  readonly phases: readonly PhaseMeasure[];
  readonly criticalPath: CriticalPath;
  /** Those that the command was asked for, in the order in which they began; the first 100,000. */
  readonly nodes: readonly NodeMeasure[];
  /** Nodes that were processed without being selected and did not fail: in none of the counts. */
  readonly unselectedNodes: readonly NodeMeasure[];
  /** In the order in which they began. */
  readonly hooks: readonly HookMeasure[];
  /** Nodes beyond the first 100,000, of which nothing is measured. */
  readonly omittedNodeCount: number;
  /** First log records of severity ERROR that name no node, at most 20 of at most 4,000 characters each. */
  readonly messages: readonly string[];
}
