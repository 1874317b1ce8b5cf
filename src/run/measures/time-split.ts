import type { UnixNano } from '../../record/telemetry-record.js';
import type { NodeVerdict } from '../verdict.js';

/** A hook's span (HookProcessed) or a phase's (PhaseExecuted), as far as known. */
export interface OtherSpan {
  readonly kind: 'hook' | 'phase';
  /** Of the hook; `null` for a phase. */
  readonly uniqueId: string | null;
  /** Without its prefix; empty where the span names none. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where it has not ended. */
  readonly endTimeUnixNano: UnixNano | null;
  /** The verdict of a hook; `null` for a phase. */
  readonly verdict: NodeVerdict | null;
  /** Why a hook did not succeed; `null` where it did, or said nothing, and for a phase. */
  readonly message: string | null;
}

/** Something in a command that takes time and that others may wait for. */
export interface PathStep {
  /** A node in a phase (NodeEvaluated), a hook (HookProcessed), or a phase without either (PhaseExecuted). */
  readonly kind: 'node' | 'hook' | 'phase';
  /** Of the node or the hook; `null` for a phase. */
  readonly uniqueId: string | null;
  /** Without its prefix, for example `RUN`. */
  readonly phase: string;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  /** Whether its own end was seen; else its end is that of the node, or of the command. */
  readonly hasEnd: boolean;
  /** The node that the engine reports as the cause of the skip. */
  readonly skipUpstream: string | null;
  /** Parts of it in which it waited for a thread or a connection: in order, inside it, none over another. */
  readonly waits: readonly Interval[];
}

/** What of a step is left when its waits are taken out, in order. */
export function withoutWaits({
  startTimeUnixNano,
  endTimeUnixNano,
  waits,
}: Interval & Pick<PathStep, 'waits'>): readonly Interval[] {
  if (waits.length === 0) return [{ startTimeUnixNano, endTimeUnixNano }];
  const starts = [startTimeUnixNano, ...waits.map((wait) => wait.endTimeUnixNano)];
  return starts
    .map((start, index) => ({
      startTimeUnixNano: start,
      endTimeUnixNano: waits[index]?.startTimeUnixNano ?? endTimeUnixNano,
    }))
    .filter((part) => part.endTimeUnixNano > part.startTimeUnixNano);
}

/** The length of intervals together, in nanoseconds. */
export function lengthOf(intervals: readonly Interval[]): bigint {
  return intervals.reduce(
    (sum, { startTimeUnixNano, endTimeUnixNano }) => sum + endTimeUnixNano - startTimeUnixNano,
    0n,
  );
}

/** A query (QueryExecuted). */
export interface QuerySpan {
  /** Of the node or hook that it was made for; `null` where it names none. */
  readonly uniqueId: string | null;
  readonly startTimeUnixNano: UnixNano;
  /** `null` where it has not ended. */
  readonly endTimeUnixNano: UnixNano | null;
}

/** What of a command's length fell to one node or hook, in nanoseconds. */
export interface TimeShare {
  /** While its queries ran. */
  readonly queryNano: bigint;
  /** While it was worked on and no query ran. */
  readonly workNano: bigint;
}

/** Of nodes and hooks to which nothing fell. */
export const NO_SHARE: TimeShare = { queryNano: 0n, workNano: 0n };

/** A command's length, divided among what it was spent on. All of it adds up to the length, to the nanosecond. */
export interface TimeSplit {
  /** By the unique ids of nodes and hooks. */
  readonly shares: ReadonlyMap<string, TimeShare>;
  /** Queries that name no node and no hook. */
  readonly otherQueryNano: bigint;
  /** Waiting nodes, while no query ran and no node or hook was worked on. */
  readonly waitsNano: bigint;
  /** Phases, by their names, while there was none of this either. */
  readonly phaseNano: ReadonlyMap<string, bigint>;
  /** Time in which none of these was running. */
  readonly restNano: bigint;
  /** The same time by what a person may do about it. */
  readonly parts: TimeParts;
}

/** Where a command's time went, as people ask for it; in nanoseconds. All of it adds up to the length. */
export interface TimeParts {
  readonly parseNano: bigint;
  readonly compileNano: bigint;
  /** Nodes were executed, and hooks, while no query ran. */
  readonly runNano: bigint;
  /** Queries ran. */
  readonly warehouseNano: bigint;
  /** Nodes waited for a thread or a connection, and nothing else went on. */
  readonly threadsNano: bigint;
  /** Starting, planning, writing artifacts. */
  readonly restNano: bigint;
}

export type TimePart = keyof TimeParts;

/** The phases of each part; work on nodes in other ones is running, and other phases are the rest. */
const PHASE_PARTS: ReadonlyMap<string, TimePart> = new Map([
  ['LOAD_PROJECT', 'parseNano'],
  ['PARSE', 'parseNano'],
  ['RENDER', 'compileNano'],
  ['ANALYZE', 'compileNano'],
  ['COMPARE', 'compileNano'],
  ['LINEAGE', 'compileNano'],
  ['RUN', 'runNano'],
  ['FRESHNESS_ANALYSIS', 'runNano'],
  ['ON_RUN_START', 'runNano'],
  ['ON_RUN_END', 'runNano'],
]);

/**
 * Divides a command's duration among its activities at each point in time: the running queries; if there are none, the
 * nodes and hooks in progress; else the nodes that wait for a thread or a connection, in a phase or between two; else the phases.
 * Spans that never ended last until the end.
 * @param steps nodes in their phases, and hooks
 */
export function timeSplit(
  command: Interval,
  queries: readonly QuerySpan[],
  steps: readonly PathStep[],
  others: readonly OtherSpan[],
): TimeSplit {
  const ended = <Span extends { readonly endTimeUnixNano: UnixNano | null }>(span: Span) => ({
    ...span,
    endTimeUnixNano: span.endTimeUnixNano ?? command.endTimeUnixNano,
  });
  const asked = inOrder(queries.map(ended));
  const work = inOrder(
    steps
      .filter(({ kind }) => kind !== 'phase')
      .flatMap((step) => withoutWaits(step).map((part) => ({ ...part, uniqueId: step.uniqueId, phase: step.phase }))),
  );
  const phases = inOrder(others.filter(({ kind }) => kind === 'phase').map(ended));
  const { shares, restNano } = divideTime(command, [asked, work, queuedParts(steps), phases]);
  const [ofQueries = [], ofWork = [], ofWaits = [], ofPhases = []] = shares;
  const byId = new Map<string, TimeShare>();
  const parts: Record<TimePart, bigint> = {
    ...{ parseNano: 0n, compileNano: 0n, runNano: 0n },
    ...{ warehouseNano: sumOf(ofQueries), threadsNano: sumOf(ofWaits), restNano },
  };
  let otherQueryNano = 0n;
  const add = (uniqueId: string | null, { queryNano, workNano }: TimeShare) => {
    const known = byId.get(uniqueId ?? '') ?? NO_SHARE;
    byId.set(uniqueId ?? '', { queryNano: known.queryNano + queryNano, workNano: known.workNano + workNano });
  };
  for (const [index, { uniqueId }] of asked.entries()) {
    const queryNano = ofQueries[index] ?? 0n;
    if (uniqueId === null) otherQueryNano += queryNano;
    else add(uniqueId, { queryNano, workNano: 0n });
  }
  for (const [index, { uniqueId, phase }] of work.entries()) {
    const workNano = ofWork[index] ?? 0n;
    add(uniqueId, { queryNano: 0n, workNano });
    parts[PHASE_PARTS.get(phase) ?? 'runNano'] += workNano;
  }
  const phaseNano = new Map<string, bigint>();
  for (const [index, { phase }] of phases.entries()) {
    const nano = ofPhases[index] ?? 0n;
    phaseNano.set(phase, (phaseNano.get(phase) ?? 0n) + nano);
    parts[PHASE_PARTS.get(phase) ?? 'restNano'] += nano;
  }
  return { shares: byId, otherQueryNano, waitsNano: parts.threadsNano, phaseNano, restNano, parts };
}

/** When nodes waited: for a thread or a connection inside their phases, and between two phases. @param steps in any order */
export function queuedParts(steps: readonly PathStep[]): readonly Interval[] {
  const ofNodes = new Map<string, PathStep[]>();
  for (const step of steps) if (step.kind === 'node') grow(ofNodes, step.uniqueId ?? '', step);
  return [...ofNodes.values()].flatMap((own) => {
    let free: UnixNano | null = null;
    return own
      .sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1))
      .flatMap(({ startTimeUnixNano, endTimeUnixNano, waits }) => {
        const gap =
          free !== null && free < startTimeUnixNano
            ? [{ startTimeUnixNano: free, endTimeUnixNano: startTimeUnixNano }]
            : [];
        free = free === null || endTimeUnixNano > free ? endTimeUnixNano : free;
        return [...gap, ...waits];
      });
  });
}

function sumOf(shares: readonly bigint[]): bigint {
  return shares.reduce((sum, share) => sum + share, 0n);
}

/** In an order that does not depend on the arrival of records: whole nanoseconds go to the same spans each time. */
function inOrder<Span extends Interval & { readonly uniqueId: string | null }>(
  spans: readonly Span[],
): readonly Span[] {
  return [...spans].sort((a, b) => {
    if (a.startTimeUnixNano !== b.startTimeUnixNano) return a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1;
    if (a.endTimeUnixNano !== b.endTimeUnixNano) return a.endTimeUnixNano < b.endTimeUnixNano ? -1 : 1;
    return (a.uniqueId ?? '') < (b.uniqueId ?? '') ? -1 : 1;
  });
}

/** What fell to a node or hook in all. */
export function shareOf({ queryNano, workNano }: TimeShare): bigint {
  return queryNano + workNano;
}

/**
 * The nodes without which the command would have been shortest: by what of its length fell to them, longest first; those of
 * equal length by their ids. Nodes to which nothing fell are left out.
 */
export function slowestNodes<Node extends { readonly uniqueId: string; readonly share: TimeShare }>(
  nodes: readonly Node[],
  limit: number,
): readonly Node[] {
  return nodes
    .map((node) => ({ node, nano: shareOf(node.share) }))
    .filter(({ nano }) => nano > 0n)
    .sort((a, b) => Number(b.nano - a.nano) || (a.node.uniqueId < b.node.uniqueId ? -1 : 1))
    .slice(0, limit)
    .map(({ node }) => node);
}

/**
 * The shares of a command's duration, in nanoseconds; all but `warehouseNano` add up to the duration. Each point in time is divided
 * among the running queries; if there are none, among the nodes and hooks in progress; else it is of those that wait, else of the phases.
 */
export interface LengthSplit {
  readonly nodesNano: bigint;
  /** Nodes that were not selected. */
  readonly unselectedNodesNano: bigint;
  readonly hooksNano: bigint;
  /** Queries that name neither a node nor a hook. */
  readonly otherQueriesNano: bigint;
  /** Nodes that waited, while no query ran and no node or hook was worked on. */
  readonly waitsNano: bigint;
  /** Phases while there was none of this. */
  readonly phasesNano: bigint;
  /** Time in which none of these was in progress. */
  readonly restNano: bigint;
  /** How much of the length queries ran for. */
  readonly warehouseNano: bigint;
}

/** Something to which a share of the length fell. */
interface Sharing {
  readonly share: TimeShare;
}

/** What a command's length was divided among. */
interface SplitParts {
  readonly nodes: readonly Sharing[];
  readonly unselectedNodes: readonly Sharing[];
  readonly hooks: readonly Sharing[];
  readonly phases: readonly { readonly shareNano: bigint }[];
}

/** Sums up what a command's length was spent on. @param otherQueriesNano queries that name neither a node nor a hook */
export function lengthSplit(
  { nodes, unselectedNodes, hooks, phases }: SplitParts,
  { otherQueriesNano, waitsNano, restNano }: Pick<LengthSplit, 'otherQueriesNano' | 'waitsNano' | 'restNano'>,
): LengthSplit {
  const all = [...nodes, ...unselectedNodes, ...hooks];
  const sharesOf = (some: readonly Sharing[]) => some.reduce((sum, { share }) => sum + shareOf(share), 0n);
  return {
    nodesNano: sharesOf(nodes),
    unselectedNodesNano: sharesOf(unselectedNodes),
    hooksNano: sharesOf(hooks),
    otherQueriesNano,
    waitsNano,
    phasesNano: phases.reduce((sum, { shareNano }) => sum + shareNano, 0n),
    restNano,
    warehouseNano: all.reduce((sum, { share }) => sum + share.queryNano, otherQueriesNano),
  };
}

/** Start and end of an activity. */
export interface Interval {
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
}

/** A duration divided among activities. All shares and the idle time add up to the duration, to the nanosecond. */
export interface DividedTime {
  /** Of each interval of each level, in their order; in nanoseconds. */
  readonly shares: readonly (readonly bigint[])[];
  /** The time without any activity, in nanoseconds. */
  readonly restNano: bigint;
}

/**
 * Divides a duration among activities. Each point in time belongs to the first level with an activity,
 * and is shared equally by all activities of that level: if 20 queries run concurrently, each gets a twentieth.
 * @param whole at most 104 days; parts of an interval outside it are ignored
 * @param levels in order of priority
 */
export function divideTime(whole: Interval, levels: readonly (readonly Interval[])[]): DividedTime {
  const lengthNano = Math.max(0, Number(whole.endTimeUnixNano - whole.startTimeUnixNano));
  const within = (time: UnixNano) => Math.min(lengthNano, Math.max(0, Number(time - whole.startTimeUnixNano)));
  const clipped = levels.map((level) => ({
    starts: Float64Array.from(level, ({ startTimeUnixNano }) => within(startTimeUnixNano)),
    // After the clock was set back something may end before its start: its duration is 0.
    ends: Float64Array.from(level, ({ startTimeUnixNano, endTimeUnixNano }) =>
      Math.max(within(startTimeUnixNano), within(endTimeUnixNano)),
    ),
  }));
  const times = sortedTimes(clipped.flatMap(({ starts, ends }) => [starts, ends]));
  const active = clipped.map(({ starts, ends }) => activeAfter(times, starts, ends));
  const { clocks, totals } = sweep(times, active);
  const shares = clipped.map(({ starts, ends }, level) => {
    const clock = clocks[level] ?? times;
    const at = (time: number) => clock[indexOf(times, time)] ?? 0;
    return wholeShares(
      starts.map((start, index) => at(ends[index] ?? start) - at(start)),
      totals[level] ?? 0,
    );
  });
  const restNano = lengthNano - totals.reduce((sum, total) => sum + total, 0);
  return { shares, restNano: BigInt(restNano) };
}

/** All times, each once, in order. */
function sortedTimes(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  all.sort();
  let kept = 0;
  for (const time of all) if (kept === 0 || all[kept - 1] !== time) all[kept++] = time;
  return all.subarray(0, kept);
}

/** The number of active intervals between each of these times and the next. */
function activeAfter(times: Float64Array, starts: Float64Array, ends: Float64Array): Int32Array {
  const changes = new Int32Array(times.length);
  const add = (time: number, change: number) => {
    const at = indexOf(times, time);
    changes[at] = (changes[at] ?? 0) + change;
  };
  for (const start of starts) add(start, 1);
  for (const end of ends) add(end, -1);
  let count = 0;
  return changes.map((change) => {
    count += change;
    return count;
  });
}

/**
 * Processes the times in one pass. The clock of a level stops while the time belongs to another level, and runs slower the more
 * intervals are active on it, so the share of an interval is the advance of its clock.
 */
function sweep(times: Float64Array, active: readonly Int32Array[]) {
  const clocks = active.map(() => new Float64Array(times.length));
  const totals = active.map(() => 0);
  for (let at = 0; at + 1 < times.length; at++) {
    const time = (times[at + 1] ?? 0) - (times[at] ?? 0);
    const level = active.findIndex((counts) => (counts[at] ?? 0) > 0);
    for (const clock of clocks) clock[at + 1] = clock[at] ?? 0;
    const clock = clocks[level];
    if (clock === undefined) continue;
    clock[at + 1] = (clock[at] ?? 0) + time / (active[level]?.[at] ?? 1);
    totals[level] = (totals[level] ?? 0) + time;
  }
  return { clocks, totals };
}

/** Shares in whole nanoseconds, each at most one off, that add up to the total. */
function wholeShares(shares: Float64Array, total: number): readonly bigint[] {
  const sum = shares.reduce((so, share) => so + share, 0);
  if (sum === 0) return Array.from(shares, () => 0n);
  let before = 0;
  let given = 0;
  return Array.from(shares, (share, index) => {
    before += share;
    const until = index === shares.length - 1 ? total : Math.min(total, Math.round((before / sum) * total));
    const own = until - given;
    given = until;
    return BigInt(own);
  });
}

/** Where a time stands among the sorted times. */
function indexOf(times: Float64Array, time: number): number {
  let low = 0;
  for (let high = times.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds to the list of a key. */
export function grow<Item>(map: Map<string, Item[]>, key: string, step: Item): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [step]);
  else known.push(step);
}
