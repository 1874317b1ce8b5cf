import { invocationIdOf, type TraceId } from '../../record/telemetry-record.js';
import type { PathLink } from './critical-path.js';
import type { HookMeasure, NodeMeasure, NodePhase, PhaseMeasure } from './node-measure.js';
import { concurrencyOf } from './pace.js';
import type { CommandMeasures, Comparison } from './run-totals.js';
import { shareOf, slowestNodes, type TimeShare } from './time-split.js';

/** Nodes in `slowest_nodes`. */
const SLOWEST = 10;

/**
 * A command's measures as JSON: names in snake_case, timestamps as strings of nanoseconds, durations in
 * milliseconds (`*_ms`) with nanosecond precision.
 */
export function measuresDocument(command: CommandMeasures, traceId: TraceId) {
  const { invocation, totals, split, timeParts, ...measures } = command;
  const percentOf = percentOfLength(totals.lengthNano);
  const concurrency = concurrencyOf(command);
  return {
    trace_id: traceId,
    invocation_id: invocationIdOf(traceId),
    index: invocation.index,
    command: invocation.command,
    raw_command: invocation.rawCommand,
    verdict: invocation.verdict,
    status_message: invocation.statusMessage,
    start_time_unix_nano: String(invocation.startTimeUnixNano),
    end_time_unix_nano: String(invocation.endTimeUnixNano),
    totals: {
      length_ms: toMs(totals.lengthNano),
      node_count: totals.nodeCount,
      node_counts: totals.nodeCounts,
      no_op_count: totals.noOpCount,
      hook_counts: totals.hookCounts,
      test_counts: totals.testCounts,
      duration_ms: totals.durationMs,
      idle_time_ms: totals.idleTimeMs,
      warehouse_time_ms: toMs(totals.warehouseTimeNano),
      other_warehouse_time_ms: toMs(totals.otherWarehouseTimeNano),
      query_count: totals.queryCount,
      rows: totals.rows,
    },
    split: {
      nodes_ms: toMs(split.nodesNano),
      unselected_nodes_ms: toMs(split.unselectedNodesNano),
      hooks_ms: toMs(split.hooksNano),
      other_queries_ms: toMs(split.otherQueriesNano),
      waits_ms: toMs(split.waitsNano),
      phases_ms: toMs(split.phasesNano),
      rest_ms: toMs(split.restNano),
      warehouse_ms: toMs(split.warehouseNano),
    },
    parts: {
      parse_ms: toMs(timeParts.parseNano),
      compile_ms: toMs(timeParts.compileNano),
      run_ms: toMs(timeParts.runNano),
      warehouse_ms: toMs(timeParts.warehouseNano),
      threads_ms: toMs(timeParts.threadsNano),
      rest_ms: toMs(timeParts.restNano),
    },
    concurrency: concurrency && { peak: concurrency.peak, average: Math.round(concurrency.average * 10) / 10 },
    phases: measures.phases.map((phase) => phaseDocument(phase, percentOf)),
    critical_path: {
      follows: measures.criticalPath.follows,
      links: measures.criticalPath.links.map(linkDocument),
      tail_ms: toMs(measures.criticalPath.tailNano),
    },
    slowest_nodes: slowestNodes(measures.nodes, SLOWEST).map(({ uniqueId }) => uniqueId),
    nodes: measures.nodes.map((node) => nodeDocument(node, percentOf)),
    unselected_nodes: measures.unselectedNodes.map(({ uniqueId, share }) => ({
      unique_id: uniqueId,
      ...shareDocument(share, percentOf),
    })),
    hooks: measures.hooks.map((hook) => hookDocument(hook, percentOf)),
    omitted_node_count: measures.omittedNodeCount,
    messages: measures.messages,
  };
}

/** A length in percent of a command's, with three decimal places. */
type PercentOf = (nano: bigint) => number;

function percentOfLength(lengthNano: bigint): PercentOf {
  return (nano) => (lengthNano === 0n ? 0 : Math.round((Number(nano) / Number(lengthNano)) * 100_000) / 1_000);
}

function shareDocument(share: TimeShare, percentOf: PercentOf) {
  const nano = shareOf(share);
  return { share_ms: toMs(nano), share_percent: percentOf(nano), share_warehouse_ms: toMs(share.queryNano) };
}

function hookDocument({ uniqueId, verdict, share, ...hook }: HookMeasure, percentOf: PercentOf) {
  return {
    unique_id: uniqueId,
    verdict,
    start_time_unix_nano: String(hook.startTimeUnixNano),
    end_time_unix_nano: hook.endTimeUnixNano === null ? null : String(hook.endTimeUnixNano),
    ...shareDocument(share, percentOf),
  };
}

function phaseDocument(phase: PhaseMeasure, percentOf: PercentOf) {
  return {
    phase: phase.phase,
    start_time_unix_nano: String(phase.startTimeUnixNano),
    end_time_unix_nano: phase.endTimeUnixNano === null ? null : String(phase.endTimeUnixNano),
    share_ms: toMs(phase.shareNano),
    share_percent: percentOf(phase.shareNano),
    span_time_ms: toMs(phase.spanTimeNano),
    node_count: phase.nodeCount,
    node_time_ms: toMs(phase.nodeTimeNano),
    idle_time_ms: phase.idleTimeMs,
    warehouse_time_ms: toMs(phase.warehouseTimeNano),
  };
}

/** The bases of links, as documents call them. */
const BASIS_NAMES = {
  reported: 'told',
  dependsOn: 'depends_on',
  sameNode: 'same_node',
  inferred: 'inferred',
  start: 'start',
} as const;

function linkDocument({ step, basis, waitNano, timeNano }: PathLink) {
  return {
    kind: step.kind,
    unique_id: step.uniqueId,
    phase: step.phase,
    start_time_unix_nano: String(step.startTimeUnixNano),
    basis: BASIS_NAMES[basis],
    wait_ms: toMs(waitNano),
    time_ms: toMs(timeNano),
    has_end: step.hasEnd,
  };
}

function nodeDocument(node: NodeMeasure, percentOf: PercentOf) {
  return {
    unique_id: node.uniqueId,
    node_type: node.nodeType,
    verdict: node.verdict,
    ...outcomeDocument(node),
    previous_status: node.previousStatus,
    ...shareDocument(node.share, percentOf),
    duration_ms: node.durationMs,
    idle_time_ms: node.idleTimeMs,
    lifetime_ms: node.lifetimeNano === null ? null : toMs(node.lifetimeNano),
    warehouse_time_ms: toMs(node.warehouseTimeNano),
    query_count: node.queryCount,
    rows: node.rows,
    message: node.message,
    phases: node.phases.map((phase) => ({
      phase: phase.phase,
      ...outcomeDocument(phase),
      start_time_unix_nano: String(phase.startTimeUnixNano),
      end_time_unix_nano: phase.endTimeUnixNano === null ? null : String(phase.endTimeUnixNano),
      idle_time_ms: phase.idleTimeMs,
      lifetime_ms: phase.lifetimeNano === null ? null : toMs(phase.lifetimeNano),
      warehouse_time_ms: toMs(phase.warehouseTimeNano),
      rows: phase.rows,
    })),
  };
}

function outcomeDocument(measured: NodeMeasure | NodePhase) {
  return {
    outcome: measured.outcome,
    skip_reason: measured.skipReason,
    skip_upstream: measured.skipUpstream,
    test_outcome: measured.testOutcome,
    failing_rows: measured.failingRows,
    freshness: measured.freshness && {
      outcome: measured.freshness.outcome,
      age_seconds: measured.freshness.ageSeconds,
    },
  };
}

/** Lengths are far below 2^53 ns (104 days), so nothing is lost. */
function toMs(nano: bigint): number {
  return Number(nano) / 1e6;
}

/** A command's length beside earlier ones, as answers and reports have it. */
export function comparisonDocument({ count, medianMs, p95Ms, ratio, isSlow }: Comparison) {
  return { earlier_count: count, median_ms: medianMs, p95_ms: p95Ms, ratio, is_slow: isSlow };
}
