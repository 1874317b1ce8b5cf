import type { NodeVerdict } from '../verdict.js';
import type { NodeMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';

/** A node that both commands had. */
export interface NodePair {
  readonly before: NodeMeasure;
  readonly after: NodeMeasure;
  /** How much longer the engine worked on it, in milliseconds; negative where it was faster, `null` where one has no time. */
  readonly longerMs: number | null;
}

/** What is different between two engine commands of one kind. */
export interface CommandComparison {
  readonly before: CommandMeasures;
  readonly after: CommandMeasures;
  /** How much longer the command took, in milliseconds. */
  readonly longerMs: number;
  /** Nodes that ended otherwise: those that got worse first. */
  readonly changed: readonly NodePair[];
  /** By the time that they took more, most first: at least 100 ms. */
  readonly slower: readonly NodePair[];
  /** The same of those that took less. */
  readonly faster: readonly NodePair[];
  /** Nodes of the later command alone, and of the earlier one alone, by their ids. */
  readonly added: readonly NodeMeasure[];
  readonly gone: readonly NodeMeasure[];
}

/** Two runs: their commands in pairs, and those that only one of them has. */
export interface RunComparison {
  readonly pairs: readonly CommandComparison[];
  readonly added: readonly CommandMeasures[];
  readonly gone: readonly CommandMeasures[];
}

/** Smaller changes are not listed, in milliseconds: the engine's times vary by that from run to run. */
const MIN_CHANGE_MS = 100;

/**
 * Compares two runs: the first `build` of one with the first `build` of the other, and so on.
 * @param before commands of the earlier run, in their order
 */
export function compareRuns(before: readonly CommandMeasures[], after: readonly CommandMeasures[]): RunComparison {
  const left = new Map(keyed(before));
  const pairs: CommandComparison[] = [];
  const added: CommandMeasures[] = [];
  for (const [key, command] of keyed(after)) {
    const earlier = left.get(key);
    left.delete(key);
    if (earlier === undefined) added.push(command);
    else pairs.push(compareCommands(earlier, command));
  }
  return { pairs, added, gone: [...left.values()] };
}

/** Commands by their first word and their position among those of the same. */
function keyed(commands: readonly CommandMeasures[]): readonly (readonly [string, CommandMeasures])[] {
  const counts = new Map<string | null, number>();
  return commands.map((command) => {
    const word = command.invocation.command;
    const count = (counts.get(word) ?? 0) + 1;
    counts.set(word, count);
    return [`${word} ${count}`, command];
  });
}

/** Compares two commands node by node. */
export function compareCommands(before: CommandMeasures, after: CommandMeasures): CommandComparison {
  const earlier = new Map(before.nodes.map((node) => [node.uniqueId, node]));
  const later = new Set(after.nodes.map(({ uniqueId }) => uniqueId));
  const both = after.nodes.flatMap((node) => {
    const other = earlier.get(node.uniqueId);
    return other === undefined ? [] : [pairOf(other, node)];
  });
  const moved = both.flatMap((pair) => (pair.longerMs === null ? [] : [{ pair, ms: pair.longerMs }]));
  return {
    before,
    after,
    longerMs: Number(after.totals.lengthNano - before.totals.lengthNano) / 1e6,
    changed: both
      .filter((pair) => pair.before.verdict !== pair.after.verdict)
      .sort((a, b) => worsening(b) - worsening(a) || byId(a.after, b.after)),
    slower: moved
      .filter(({ ms }) => ms >= MIN_CHANGE_MS)
      .sort((a, b) => b.ms - a.ms || byId(a.pair.after, b.pair.after))
      .map(({ pair }) => pair),
    faster: moved
      .filter(({ ms }) => ms <= -MIN_CHANGE_MS)
      .sort((a, b) => a.ms - b.ms || byId(a.pair.after, b.pair.after))
      .map(({ pair }) => pair),
    added: after.nodes.filter(({ uniqueId }) => !earlier.has(uniqueId)).sort(byId),
    gone: before.nodes.filter(({ uniqueId }) => !later.has(uniqueId)).sort(byId),
  };
}

function pairOf(before: NodeMeasure, after: NodeMeasure): NodePair {
  const isTimed = before.durationMs !== null && after.durationMs !== null;
  return { before, after, longerMs: isTimed ? after.durationMs - before.durationMs : null };
}

/** The better, the less; an outcome that this version does not know stands in the middle. */
const BADNESS: Readonly<Partial<Record<NodeVerdict, number>>> = {
  success: 0,
  warned: 1,
  skipped: 3,
  canceled: 4,
  unfinished: 5,
  failed: 6,
  error: 7,
};
const UNKNOWN_BADNESS = 2;

function worsening({ before, after }: NodePair): number {
  return (BADNESS[after.verdict] ?? UNKNOWN_BADNESS) - (BADNESS[before.verdict] ?? UNKNOWN_BADNESS);
}

function byId(a: NodeMeasure, b: NodeMeasure): number {
  return a.uniqueId < b.uniqueId ? -1 : a.uniqueId > b.uniqueId ? 1 : 0;
}
