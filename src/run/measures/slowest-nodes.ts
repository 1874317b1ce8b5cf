import type { NodeMeasure } from './node-measure.js';

/**
 * The nodes that took most work, by NodeProcessed `duration_ms`, longest first; those of equal length by their ids. Nodes
 * without a `duration_ms`, and of 0 ms, are left out.
 */
export function slowestNodes(nodes: readonly NodeMeasure[], limit: number): readonly NodeMeasure[] {
  return nodes
    .filter(({ durationMs }) => (durationMs ?? 0) > 0)
    .sort((a, b) => (b.durationMs ?? 0) - (a.durationMs ?? 0) || (a.uniqueId < b.uniqueId ? -1 : 1))
    .slice(0, limit);
}
