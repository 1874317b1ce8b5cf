import { dirname } from 'node:path/posix';
import { phaseWords } from '../words.js';
import type { NodeMeasure, PhaseMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';
import { withoutWaits } from './time-split.js';

/** A part of a node's phase in which it did not wait. */
export interface TimelinePiece {
  readonly node: NodeMeasure;
  /** For example `RUN`; empty where the telemetry has none. */
  readonly phase: string;
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

/** Lanes that belong together. */
export interface TimelineGroup extends LimitedLanes<TimelinePiece> {
  /** What they have in common; empty where all lanes are one group. */
  readonly name: string;
}

/** What lanes are grouped by: nothing, since each is what a thread may have done, or what nodes have in common. */
export const LANE_GROUPINGS = ['thread', 'type', 'folder', 'phase'] as const;
export type LaneGrouping = (typeof LANE_GROUPINGS)[number];

/** A command over time, as pages and reports draw it. The engine does not tell threads: what was worked on at once stands in different lanes. */
export interface Timeline {
  readonly start: bigint;
  readonly end: bigint;
  readonly phaseRows: readonly (readonly TimelinePhase[])[];
  readonly groups: readonly TimelineGroup[];
  /** Nodes that are drawn, by their first start, and how many with a place in time are not. */
  readonly nodes: readonly NodeMeasure[];
  readonly omittedCount: number;
  /** Unique ids of the nodes on the critical path. */
  readonly critical: ReadonlySet<string>;
}

/** The most lanes of all nodes together, which are more than most warehouses have threads, and of a group of them. */
export const MAX_LANES = 32;
const MAX_GROUP_LANES = 8;
/** The most groups; the rest, those that were worked on least, are one more. */
const MAX_GROUPS = 20;

/**
 * Lays out a command's phases and nodes.
 * @param maxNodes nodes that are drawn: those that failed, then those that took longest
 * @returns `null` where there is nothing to draw
 */
export function timelineOf(
  command: CommandMeasures,
  maxNodes: number,
  grouping: LaneGrouping = 'thread',
): Timeline | null {
  const { invocation, nodes, phases, criticalPath } = command;
  const { startTimeUnixNano: from, endTimeUnixNano: until } = invocation;
  const all = nodes.flatMap((node) =>
    node.phases.length === 0 ? [] : [{ node, pieces: piecesOf(node, until), lengthNano: node.lifetimeNano ?? 0n }],
  );
  if (until <= from || (all.length === 0 && phases.length === 0)) return null;
  const isBad = ({ verdict }: NodeMeasure) => verdict === 'error' || verdict === 'failed';
  const drawn = all
    .toSorted((a, b) => Number(isBad(b.node)) - Number(isBad(a.node)) || Number(b.lengthNano - a.lengthNano))
    .slice(0, maxNodes);
  return {
    start: from,
    end: until,
    phaseRows: lanes(
      phases.map((phase) => ({ phase, start: phase.startTimeUnixNano, end: phase.endTimeUnixNano ?? until })),
    ),
    groups: groupsOf(
      drawn.flatMap(({ pieces }) => pieces),
      grouping,
    ),
    nodes: drawn
      .map(({ node }) => node)
      .sort((a, b) => ((a.startTimeUnixNano ?? 0n) < (b.startTimeUnixNano ?? 0n) ? -1 : 1)),
    omittedCount: all.length - drawn.length,
    critical: new Set(criticalPath.links.flatMap(({ step }) => step.uniqueId ?? [])),
  };
}

function groupsOf(pieces: readonly TimelinePiece[], grouping: LaneGrouping): readonly TimelineGroup[] {
  if (grouping === 'thread') return [{ name: '', ...limitedLanes(pieces, MAX_LANES) }];
  const groups = new Map<string, TimelinePiece[]>();
  for (const piece of pieces) add(groups, groupName(piece, grouping), piece);
  const sorted = [...groups]
    .map(([name, found]) => ({ name, found, workNano: found.reduce((sum, { start, end }) => sum + end - start, 0n) }))
    .sort((a, b) => Number(b.workNano - a.workNano));
  const rest = sorted.splice(MAX_GROUPS).flatMap(({ found }) => found);
  return [...sorted, ...(rest.length === 0 ? [] : [{ name: 'others', found: rest }])].map(({ name, found }) => ({
    name,
    ...limitedLanes(found, MAX_GROUP_LANES),
  }));
}

function groupName({ node, phase }: TimelinePiece, grouping: Exclude<LaneGrouping, 'thread'>): string {
  switch (grouping) {
    case 'type':
      return (node.nodeType ?? 'other').replaceAll('_', ' ');
    case 'folder':
      return node.relativePath === null ? 'no folder' : dirname(node.relativePath);
    case 'phase':
      return phaseWords(phase);
  }
}

function add<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}

/** The parts of a node's time in which it did not wait; of one without phases all of it. @param commandEnd where what never ended is taken to end */
export function piecesOf(node: NodeMeasure, commandEnd: bigint): readonly TimelinePiece[] {
  const { startTimeUnixNano: start, endTimeUnixNano, phases } = node;
  if (phases.length === 0) {
    return start === null ? [] : [{ node, phase: '', start, end: later(start, endTimeUnixNano ?? commandEnd) }];
  }
  return phases.flatMap(({ phase, waits, startTimeUnixNano, endTimeUnixNano: phaseEnd }) => {
    const end = later(startTimeUnixNano, phaseEnd ?? endTimeUnixNano ?? commandEnd);
    return withoutWaits({ startTimeUnixNano, endTimeUnixNano: end, waits }).map((part) => {
      return { node, phase, start: part.startTimeUnixNano, end: part.endTimeUnixNano };
    });
  });
}

export function later(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

export function sooner(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

/** Something that takes time. */
interface Span {
  readonly start: bigint;
  readonly end: bigint;
}

/** Slices in lanes, and what found none. */
export interface LimitedLanes<Slice extends Span> {
  /** Slices of a lane follow one another. */
  readonly lanes: readonly (readonly Slice[])[];
  /** Times in which more was going on than there are lanes, with what is in none; they follow one another. */
  readonly crowds: readonly (Span & { readonly slices: readonly Slice[] })[];
}

/** Slices in as few lanes as they need without overlapping. @param slices in any order */
export function lanes<Slice extends Span>(slices: readonly Slice[]): readonly (readonly Slice[])[] {
  return limitedLanes(slices, Number.POSITIVE_INFINITY).lanes;
}

/** Slices in as few lanes as they need without overlapping, at most so many. @param slices in any order */
export function limitedLanes<Slice extends Span>(slices: readonly Slice[], maxLanes: number): LimitedLanes<Slice> {
  const found: Slice[][] = [];
  const crowds: { start: bigint; end: bigint; slices: Slice[] }[] = [];
  const inOrder = [...slices].sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.end > b.end ? -1 : 1));
  for (const one of inOrder) {
    const lane = found.find((others) => (others.at(-1)?.end ?? 0n) <= one.start);
    const crowd = crowds.at(-1);
    if (lane !== undefined) lane.push(one);
    else if (found.length < maxLanes) found.push([one]);
    else if (crowd !== undefined && one.start < crowd.end) {
      crowd.end = later(crowd.end, one.end);
      crowd.slices.push(one);
    } else crowds.push({ start: one.start, end: one.end, slices: [one] });
  }
  return { lanes: found, crowds };
}
