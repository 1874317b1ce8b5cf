import type { NodeMeasure, PhaseMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';

/** A node on a timeline. */
export interface TimelineBar {
  readonly node: NodeMeasure;
  /** Nanoseconds since the epoch, as all times here. */
  readonly start: bigint;
  readonly end: bigint;
}

/** A phase on a timeline. */
export interface TimelinePhase {
  readonly phase: PhaseMeasure;
  readonly start: bigint;
  readonly end: bigint;
}

/** A command over time, as pages and reports draw it: what overlaps stands in different rows, since the engine does not tell threads. */
export interface Timeline {
  readonly start: bigint;
  readonly end: bigint;
  readonly phaseRows: readonly (readonly TimelinePhase[])[];
  readonly nodeRows: readonly (readonly TimelineBar[])[];
  /** Nodes with a place in time that have no bar. */
  readonly omittedCount: number;
  /** Unique ids of the nodes on the critical path. */
  readonly critical: ReadonlySet<string>;
}

/**
 * Lays out a command's phases and nodes.
 * @param maxBars nodes that get a bar: those that failed, then those that took longest
 * @returns `null` where there is nothing to draw
 */
export function timelineOf(command: CommandMeasures, maxBars: number): Timeline | null {
  const { invocation, nodes, phases, criticalPath } = command;
  const { startTimeUnixNano: from, endTimeUnixNano: until } = invocation;
  const all = nodes.flatMap((node): readonly TimelineBar[] => {
    const start = node.startTimeUnixNano;
    if (start === null || node.phases.length === 0) return [];
    const ends = node.phases.map(({ endTimeUnixNano }) => endTimeUnixNano ?? node.endTimeUnixNano ?? until);
    const end = ends.reduce(later, node.endTimeUnixNano ?? start);
    return [{ node, start, end }];
  });
  if (until <= from || (all.length === 0 && phases.length === 0)) return null;
  const isBad = ({ node: { verdict } }: TimelineBar) => verdict === 'error' || verdict === 'failed';
  const bars = [...all]
    .sort((a, b) => Number(isBad(b)) - Number(isBad(a)) || Number(b.end - b.start - (a.end - a.start)))
    .slice(0, maxBars);
  return {
    start: from,
    end: until,
    phaseRows: lanes(
      phases.map((phase) => ({ phase, start: phase.startTimeUnixNano, end: phase.endTimeUnixNano ?? until })),
    ),
    nodeRows: lanes(bars),
    omittedCount: all.length - bars.length,
    critical: new Set(criticalPath.links.flatMap(({ step }) => step.uniqueId ?? [])),
  };
}

export function later(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

export function sooner(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

/** Slices in as few lanes as they need without overlapping. @param slices in any order */
export function lanes<Span extends { readonly start: bigint; readonly end: bigint }>(
  slices: readonly Span[],
): readonly (readonly Span[])[] {
  const found: Span[][] = [];
  const inOrder = [...slices].sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.end > b.end ? -1 : 1));
  for (const one of inOrder) {
    const lane = found.find((others) => (others.at(-1)?.end ?? 0n) <= one.start);
    if (lane === undefined) found.push([one]);
    else lane.push(one);
  }
  return found;
}
