import type { NodeVerdict } from './run-summary.js';

/** How many nodes came to each verdict. */
export function countVerdicts(nodes: Iterable<{ readonly verdict: NodeVerdict }>): Record<NodeVerdict, number> {
  const counts = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
  for (const { verdict } of nodes) counts[verdict] += 1;
  return counts;
}
