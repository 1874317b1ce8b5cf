import { resourceKey, UNKNOWN_RESOURCE } from '../record/resource.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { InvocationParts } from './invocation-parts.js';
import type { RootSpan } from './root-span.js';
import type { SpanGroup } from './span-group.js';

/** A process is compared with so many invocations that began next after it, so that a trace of thousands stays quick. */
const MAX_NEIGHBOURS = 64;
const UNKNOWN_KEY = resourceKey(UNKNOWN_RESOURCE);

interface Candidate {
  readonly process: RootSpan;
  readonly group: SpanGroup;
}

interface Pair extends Candidate {
  readonly invocation: InvocationParts;
  /** By how much the process is longer than the invocation on both sides. */
  readonly slackNano: bigint;
}

/**
 * Gives each process span to the invocation of the same step or resource (and outer parent) whose times it encloses, the closest
 * first and one to one; where two processes enclose both of their invocations, both are marked ambiguous.
 * @returns the process groups that enclose no invocation.
 */
export function matchProcesses(
  invocations: readonly InvocationParts[],
  processGroups: readonly SpanGroup[],
): readonly SpanGroup[] {
  const processes = processGroups.flatMap((group) =>
    [...group.processes.values()].map((process) => ({ process, group })),
  );
  const matched: Pair[] = [];
  const takenGroups = new Set<SpanGroup>();
  for (const pair of closestFirst(processes, invocations)) {
    if (pair.invocation.process !== null || takenGroups.has(pair.group)) continue;
    take(pair, takenGroups);
    matched.push(pair);
  }
  matchTheLast(invocations, processes, takenGroups);
  markInterchangeable(matched);
  return processGroups.filter((group) => !takenGroups.has(group));
}

/** Every process with the invocations that it may belong to. */
function closestFirst(processes: readonly Candidate[], invocations: readonly InvocationParts[]): Pair[] {
  const byStart = [...invocations].sort((a, b) => compare(startOf(a), startOf(b)));
  const pairs: Pair[] = [];
  for (const candidate of processes) {
    const from = firstAtOrAfter(byStart, candidate.process.startTimeUnixNano);
    for (const invocation of byStart.slice(from, from + MAX_NEIGHBOURS)) {
      if (!isSameOrigin(candidate, invocation) || !encloses(candidate.process, invocation)) continue;
      pairs.push({ ...candidate, invocation, slackNano: slack(candidate.process, invocation) });
    }
  }
  return pairs.sort(byCloseness);
}

function take({ process, group, invocation }: Omit<Pair, 'slackNano'>, takenGroups: Set<SpanGroup>): void {
  invocation.process = process;
  invocation.groups.push(group);
  takenGroups.add(group);
}

/** One process and one invocation are left: they go together even where a clock makes them stand out of each other. */
function matchTheLast(
  invocations: readonly InvocationParts[],
  processes: readonly Candidate[],
  takenGroups: Set<SpanGroup>,
): void {
  const [left, ...furtherProcesses] = processes.filter(({ group }) => !takenGroups.has(group));
  const [invocation, ...furtherInvocations] = invocations.filter((candidate) => candidate.process === null);
  if (left === undefined || invocation === undefined) return;
  if (furtherProcesses.length > 0 || furtherInvocations.length > 0) return;
  const { startTimeUnixNano: start, endTimeUnixNano: end } = left.process;
  const doOverlap = start <= endOf(invocation) && (end === null || startOf(invocation) <= end);
  if (doOverlap && isSameOrigin(left, invocation)) take({ ...left, invocation }, takenGroups);
}

function markInterchangeable(matched: readonly Pair[]): void {
  const byStart = [...matched].sort((a, b) => compare(a.process.startTimeUnixNano, b.process.startTimeUnixNano));
  for (const [position, a] of byStart.entries()) {
    for (const b of byStart.slice(position + 1, position + 1 + MAX_NEIGHBOURS)) {
      if (!isSameOrigin(a, b.invocation) || !isSameOrigin(b, a.invocation)) continue;
      if (!encloses(a.process, b.invocation) || !encloses(b.process, a.invocation)) continue;
      a.invocation.isAmbiguous = true;
      b.invocation.isAmbiguous = true;
    }
  }
}

function isSameOrigin({ process, group }: Candidate, { invocation, own }: InvocationParts): boolean {
  if (invocation !== null && invocation.outerParentSpanId !== process.outerParentSpanId) return false;
  const [key, other] = [group.originKey, own.originKey];
  return key === other || key === UNKNOWN_KEY || other === UNKNOWN_KEY;
}

function encloses(process: RootSpan, invocation: InvocationParts): boolean {
  if (process.startTimeUnixNano > startOf(invocation)) return false;
  return process.endTimeUnixNano === null || endOf(invocation) <= process.endTimeUnixNano;
}

function slack(process: RootSpan, invocation: InvocationParts): bigint {
  const before = startOf(invocation) - process.startTimeUnixNano;
  return process.endTimeUnixNano === null ? before : before + process.endTimeUnixNano - endOf(invocation);
}

function startOf({ own }: InvocationParts): UnixNano {
  return own.startTimeUnixNano ?? 0n;
}

function endOf({ own }: InvocationParts): UnixNano {
  return own.endTimeUnixNano ?? 0n;
}

/** Position of the first invocation that begins at that time or later; they are sorted by their beginning. */
function firstAtOrAfter(byStart: readonly InvocationParts[], time: UnixNano): number {
  let [low, high] = [0, byStart.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const invocation = byStart[middle];
    if (invocation !== undefined && startOf(invocation) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function byCloseness(a: Pair, b: Pair): number {
  return (
    compare(a.slackNano, b.slackNano) ||
    compare(a.process.spanId, b.process.spanId) ||
    compare(a.invocation.spanId ?? '', b.invocation.spanId ?? '')
  );
}

function compare<T extends bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
