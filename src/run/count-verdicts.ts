import { NODE_VERDICTS, type NodeCounts, type NodeVerdict } from './run-summary.js';

/** Words of the engine's own that are counted apart; the nodes of any others count as `other`. */
const MAX_OWN_WORDS = 16;

/** Number of nodes by verdict. */
export function countVerdicts(nodes: Iterable<{ readonly verdict: NodeVerdict }>): NodeCounts {
  const counts = new Map<string, number>(NODE_VERDICTS.map((verdict) => [verdict, 0]));
  const maxWords = counts.size + MAX_OWN_WORDS;
  for (const { verdict } of nodes) {
    const word = counts.has(verdict) || counts.size < maxWords ? verdict : 'other';
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const known = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
  return { ...known, ...Object.fromEntries(counts) };
}

/**
 * The nodes that a command selected. The engine also works on others, for example a model that a unit test needs rendered,
 * and leaves them out of its summary and `run_results.json`; here they count if they failed. Older engines do not mark selected
 * nodes: there all of them count.
 */
export function selectedNodes<Node extends Selectable>(nodes: Iterable<Node>): readonly Node[] {
  const all = [...nodes];
  if (!all.some(({ isSelected }) => isSelected === true)) return all;
  return all.filter(({ isSelected, verdict }) => isSelected !== false || verdict === 'error');
}

/** The part of a node that tells whether it was selected. */
export interface Selectable {
  readonly verdict: NodeVerdict;
  /** NodeProcessed `in_selection`, which is left out where it is false; `null` where no NodeProcessed span was seen. */
  readonly isSelected: boolean | null;
}
