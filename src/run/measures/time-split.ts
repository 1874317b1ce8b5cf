import type { UnixNano } from '../../record/unix-nano.js';
import { divideTime, type Interval } from './divide-time.js';
import type { OtherSpan } from './other-span.js';
import type { PathStep } from './path-step.js';

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
  /** Phases, by their names, while no query ran and no node or hook was worked on. */
  readonly phaseNano: ReadonlyMap<string, bigint>;
  /** While nothing of these went on. */
  readonly restNano: bigint;
}

/**
 * Divides a command's length among what was really going on at each moment: the queries that ran; where there were none, the
 * nodes and hooks that were worked on; else the phases. What never ended goes on until the end.
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
  const work = inOrder(steps.filter(({ kind }) => kind !== 'phase'));
  const phases = inOrder(others.filter(({ kind }) => kind === 'phase').map(ended));
  const { shares, restNano } = divideTime(command, [asked, work, phases]);
  const [ofQueries = [], ofWork = [], ofPhases = []] = shares;
  const byId = new Map<string, TimeShare>();
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
  for (const [index, { uniqueId }] of work.entries()) add(uniqueId, { queryNano: 0n, workNano: ofWork[index] ?? 0n });
  const phaseNano = new Map<string, bigint>();
  for (const [index, { phase }] of phases.entries()) {
    phaseNano.set(phase, (phaseNano.get(phase) ?? 0n) + (ofPhases[index] ?? 0n));
  }
  return { shares: byId, otherQueryNano, phaseNano, restNano };
}

/** In an order that does not depend on the one in which records came: whole nanoseconds go to the same spans each time. */
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
 * What a command's length was spent on, in nanoseconds; all but `warehouseNano` add up to the length. Each moment is divided
 * among the queries that ran in it; where none ran, among the nodes and hooks that were worked on; else among the phases.
 */
export interface LengthSplit {
  readonly nodesNano: bigint;
  /** Nodes that were not selected. */
  readonly unselectedNodesNano: bigint;
  readonly hooksNano: bigint;
  /** Queries that name neither a node nor a hook. */
  readonly otherQueriesNano: bigint;
  /** Phases while no query ran, and no node or hook was worked on. */
  readonly phasesNano: bigint;
  /** While nothing of these was under way. */
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
  { otherQueriesNano, restNano }: Pick<LengthSplit, 'otherQueriesNano' | 'restNano'>,
): LengthSplit {
  const all = [...nodes, ...unselectedNodes, ...hooks];
  const sharesOf = (some: readonly Sharing[]) => some.reduce((sum, { share }) => sum + shareOf(share), 0n);
  return {
    nodesNano: sharesOf(nodes),
    unselectedNodesNano: sharesOf(unselectedNodes),
    hooksNano: sharesOf(hooks),
    otherQueriesNano,
    phasesNano: phases.reduce((sum, { shareNano }) => sum + shareNano, 0n),
    restNano,
    warehouseNano: all.reduce((sum, { share }) => sum + share.queryNano, otherQueriesNano),
  };
}
