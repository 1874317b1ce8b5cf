import type { NodeVerdict } from '../verdict.js';
import type { NodeMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';
import { shareOf } from './time-split.js';

/** A node that both commands had. */
export interface NodePair {
  readonly before: NodeMeasure;
  readonly after: NodeMeasure;
  /** What of the commands' lengths fell to it, in milliseconds: without the time in which it waited for others. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** How much more fell to it; negative where it was less. */
  readonly longerMs: number;
}

/** How many nodes were in progress at a time, on average: the more, the longer each waited for a processor or a connection. */
export interface Contention {
  readonly before: number | null;
  readonly after: number | null;
}

/** What is different between two engine commands of one kind. */
export interface CommandComparison {
  readonly before: CommandMeasures;
  readonly after: CommandMeasures;
  /** How much longer the command took, in milliseconds. */
  readonly longerMs: number;
  /** Differences below this are not listed, in milliseconds. */
  readonly leastMs: number;
  readonly contention: Contention;
  /** Nodes that ended otherwise: those that got worse first. */
  readonly changed: readonly NodePair[];
  /** Executed nodes to which more of the command's length fell, most first. */
  readonly slower: readonly NodePair[];
  /** The same of those to which less fell. */
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

/**
 * Smaller changes are not listed, in milliseconds and as shares of the longer command and of the node's own time: from run to
 * run times vary by that.
 */
const MIN_CHANGE_MS = 100;
const MIN_SHARE_OF_COMMAND = 0.01;
const MIN_SHARE_OF_NODE = 0.2;

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
  const longest = Math.max(lengthMs(before), lengthMs(after));
  const leastMs = Math.max(MIN_CHANGE_MS, longest * MIN_SHARE_OF_COMMAND);
  const moved = both
    .filter((pair) => pair.before.isExecuted === pair.after.isExecuted)
    .filter(({ longerMs, beforeMs, afterMs }) => {
      const least = Math.max(leastMs, MIN_SHARE_OF_NODE * Math.max(beforeMs, afterMs));
      return Math.abs(longerMs) >= least;
    });
  return {
    before,
    after,
    longerMs: Number(after.totals.lengthNano - before.totals.lengthNano) / 1e6,
    leastMs,
    contention: { before: nodesAtATime(before), after: nodesAtATime(after) },
    changed: both
      .filter((pair) => pair.before.verdict !== pair.after.verdict)
      .sort((a, b) => worsening(b) - worsening(a) || byId(a.after, b.after)),
    slower: moved
      .filter(({ longerMs }) => longerMs > 0)
      .sort((a, b) => b.longerMs - a.longerMs || byId(a.after, b.after)),
    faster: moved
      .filter(({ longerMs }) => longerMs < 0)
      .sort((a, b) => a.longerMs - b.longerMs || byId(a.after, b.after)),
    added: after.nodes.filter(({ uniqueId }) => !earlier.has(uniqueId)).sort(byId),
    gone: before.nodes.filter(({ uniqueId }) => !later.has(uniqueId)).sort(byId),
  };
}

function pairOf(before: NodeMeasure, after: NodeMeasure): NodePair {
  const [beforeMs, afterMs] = [shareMs(before), shareMs(after)];
  return { before, after, beforeMs, afterMs, longerMs: afterMs - beforeMs };
}

/** What of its command's length fell to a node, in milliseconds. */
export function shareMs({ share }: Pick<NodeMeasure, 'share'>): number {
  return Number(shareOf(share)) / 1e6;
}

function lengthMs({ totals }: CommandMeasures): number {
  return Number(totals.lengthNano) / 1e6;
}

/** The engine's time of working on nodes, which has that of waiting for a processor, by the time in which there was any. */
function nodesAtATime({ totals, split }: CommandMeasures): number | null {
  const wallMs = Number(split.nodesNano) / 1e6;
  return wallMs === 0 || totals.durationMs === 0 ? null : totals.durationMs / wallMs;
}

/** What contention was, for people; `null` where nothing is known of it. */
export function contentionText({ before, after }: Contention): string | null {
  if (before === null || after === null) return null;
  const of = (count: number) => count.toFixed(count < 10 ? 1 : 0);
  return `${of(after)} nodes were in progress at a time, ${of(before)} before: they ran, or waited for a thread, a processor or a connection. The engine's own times include that; these do not.`;
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
