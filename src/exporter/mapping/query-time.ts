import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import type { Interval, NodeIndex } from './node-index.js';

/** Writes what share of a node's time its queries took. */
export function writeQueryTime(nodes: NodeIndex, uniqueId: string, span: Interval, into: OtelAttributes): void {
  const queryTime = nodes.queryTimeOf(uniqueId, span);
  if (queryTime === undefined) return;
  into['run_bridge.node.query_count'] = queryTime.count;
  into['run_bridge.node.query_time_ms'] = Number(queryTime.nanos / 1_000n) / 1_000;
}
