import { resourceKey, UNKNOWN_RESOURCE } from '../record/resource.js';
import type { InvocationParts } from './invocation-parts.js';
import type { RootSpan } from './root-span.js';
import type { SpanGroup } from './span-group.js';

interface Pair {
  readonly process: RootSpan;
  readonly group: SpanGroup;
  readonly invocation: InvocationParts;
  /** By how much the process is longer than the invocation on both sides. */
  readonly slackNano: bigint;
}

/**
 * Gives each process span to the invocation of the same resource (and outer parent) whose times it encloses, the closest
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
  const pairs: Pair[] = [];
  for (const { process, group } of processes) {
    for (const invocation of invocations) {
      if (isSameOrigin(process, group, invocation) && encloses(process, invocation)) {
        pairs.push({ process, group, invocation, slackNano: slack(process, invocation) });
      }
    }
  }
  pairs.sort(byCloseness);
  const matched: Pair[] = [];
  const takenGroups = new Set<SpanGroup>();
  for (const pair of pairs) {
    if (pair.invocation.process !== null || takenGroups.has(pair.group)) continue;
    take(pair, takenGroups);
    matched.push(pair);
  }
  matchTheLast(invocations, processes, takenGroups);
  markInterchangeable(matched);
  return processGroups.filter((group) => !takenGroups.has(group));
}

function take(pair: Omit<Pair, 'slackNano'>, takenGroups: Set<SpanGroup>): void {
  pair.invocation.process = pair.process;
  pair.invocation.groups.push(pair.group);
  takenGroups.add(pair.group);
}

/** One process and one invocation are left: they go together even where a clock makes them stand out of each other. */
function matchTheLast(
  invocations: readonly InvocationParts[],
  processes: readonly Pick<Pair, 'process' | 'group'>[],
  takenGroups: Set<SpanGroup>,
): void {
  const [process, ...furtherProcesses] = processes.filter(({ group }) => !takenGroups.has(group));
  const [invocation, ...furtherInvocations] = invocations.filter((candidate) => candidate.process === null);
  if (process === undefined || invocation === undefined) return;
  if (furtherProcesses.length > 0 || furtherInvocations.length > 0) return;
  const { startTimeUnixNano: start, endTimeUnixNano: end } = process.process;
  const doOverlap = start <= invocation.endTimeUnixNano && (end === null || invocation.startTimeUnixNano <= end);
  if (doOverlap && isSameOrigin(process.process, process.group, invocation))
    take({ ...process, invocation }, takenGroups);
}

function markInterchangeable(matched: readonly Pair[]): void {
  for (const [index, a] of matched.entries()) {
    for (const b of matched.slice(index + 1)) {
      if (!isSameOrigin(a.process, a.group, b.invocation) || !isSameOrigin(b.process, b.group, a.invocation)) continue;
      if (!encloses(a.process, b.invocation) || !encloses(b.process, a.invocation)) continue;
      a.invocation.isAmbiguous = true;
      b.invocation.isAmbiguous = true;
    }
  }
}

function isSameOrigin(process: RootSpan, group: SpanGroup, invocation: InvocationParts): boolean {
  const outer = invocation.invocation;
  if (outer !== null && outer.outerParentSpanId !== process.outerParentSpanId) return false;
  const own = resourceKey(group.resource ?? UNKNOWN_RESOURCE);
  const unknown = resourceKey(UNKNOWN_RESOURCE);
  const other = resourceKey(ownGroup(invocation)?.resource ?? UNKNOWN_RESOURCE);
  return own === other || own === unknown || other === unknown;
}

/** The times of the invocation's own group: what was added to it later does not count here. */
function ownGroup(invocation: InvocationParts): SpanGroup | undefined {
  return invocation.groups[0];
}

function encloses(process: RootSpan, invocation: InvocationParts): boolean {
  const group = ownGroup(invocation);
  const start = group?.startTimeUnixNano ?? 0n;
  const end = group?.endTimeUnixNano ?? 0n;
  return process.startTimeUnixNano <= start && (process.endTimeUnixNano === null || end <= process.endTimeUnixNano);
}

function slack(process: RootSpan, invocation: InvocationParts): bigint {
  const group = ownGroup(invocation);
  const before = (group?.startTimeUnixNano ?? 0n) - process.startTimeUnixNano;
  return process.endTimeUnixNano === null ? before : before + process.endTimeUnixNano - (group?.endTimeUnixNano ?? 0n);
}

function byCloseness(a: Pair, b: Pair): number {
  if (a.slackNano !== b.slackNano) return a.slackNano < b.slackNano ? -1 : 1;
  if (a.process.spanId !== b.process.spanId) return a.process.spanId < b.process.spanId ? -1 : 1;
  return (a.invocation.spanId ?? '') < (b.invocation.spanId ?? '') ? -1 : 1;
}
