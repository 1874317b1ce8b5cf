import type { NodeMeasure } from './node-measure.js';
import { shareOf } from './time-split.js';

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
