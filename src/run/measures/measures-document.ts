import { invocationIdOf, type TraceId } from '../../record/ids.js';
import type { CommandMeasures } from './command-measures.js';
import type { PathLink } from './critical-path.js';
import type { NodeMeasure } from './node-measure.js';
import type { NodePhase } from './node-phase.js';
import type { PhaseMeasure } from './phase-measure.js';
import { slowestNodes } from './slowest-nodes.js';

/** Nodes in `slowest_nodes`. */
const SLOWEST = 10;

/**
 * A command's measures as JSON has them: names in snake_case, times of one moment as strings of nanoseconds, lengths in
 * milliseconds (`*_ms`) down to the nanosecond.
 */
export function measuresDocument({ invocation, totals, ...measures }: CommandMeasures, traceId: TraceId) {
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
      test_counts: totals.testCounts,
      duration_ms: totals.durationMs,
      idle_time_ms: totals.idleTimeMs,
      warehouse_time_ms: toMs(totals.warehouseTimeNano),
      other_warehouse_time_ms: toMs(totals.otherWarehouseTimeNano),
      query_count: totals.queryCount,
      rows: totals.rows,
    },
    phases: measures.phases.map(phaseDocument),
    critical_path: {
      links: measures.criticalPath.links.map(linkDocument),
      tail_ms: toMs(measures.criticalPath.tailNano),
    },
    slowest_nodes: slowestNodes(measures.nodes, SLOWEST).map(({ uniqueId }) => uniqueId),
    nodes: measures.nodes.map(nodeDocument),
    omitted_node_count: measures.omittedNodeCount,
    messages: measures.messages,
  };
}

function phaseDocument(phase: PhaseMeasure) {
  return {
    phase: phase.phase,
    start_time_unix_nano: String(phase.startTimeUnixNano),
    end_time_unix_nano: phase.endTimeUnixNano === null ? null : String(phase.endTimeUnixNano),
    span_time_ms: toMs(phase.spanTimeNano),
    node_count: phase.nodeCount,
    node_time_ms: toMs(phase.nodeTimeNano),
    idle_time_ms: phase.idleTimeMs,
    warehouse_time_ms: toMs(phase.warehouseTimeNano),
  };
}

function linkDocument({ step, basis, waitNano, timeNano }: PathLink) {
  return {
    kind: step.kind,
    unique_id: step.uniqueId,
    phase: step.phase,
    start_time_unix_nano: String(step.startTimeUnixNano),
    basis: basis === 'sameNode' ? 'same_node' : basis,
    wait_ms: toMs(waitNano),
    time_ms: toMs(timeNano),
    has_end: step.hasEnd,
  };
}

function nodeDocument(node: NodeMeasure) {
  return {
    unique_id: node.uniqueId,
    node_type: node.nodeType,
    verdict: node.verdict,
    ...outcomeDocument(node),
    previous_status: node.previousStatus,
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
  };
}

/** Lengths are far below 2^53 ns (104 days), so nothing is lost. */
function toMs(nano: bigint): number {
  return Number(nano) / 1e6;
}
