import { groupBy } from '../core/lists.js';
import { resourceKey, UNKNOWN_RESOURCE } from '../record/attributes.js';
import type { SpanId, UnixNano } from '../record/telemetry-record.js';
import { LIKELY, type RootSpan, type SpanGroup } from './span-group.js';
import { InvocationParts } from './trace-steps.js';

/**
 * Maximum number of invocations in one trace for which detached groups are compared. Beyond, such groups go to the first one,
 * marked ambiguous: comparing all pairs would let a sender keep the process busy for minutes.
 */
const MAX_CANDIDATES = 200;

/**
 * Assigns groups of spans to invocations; a pure function of the groups, independent of the order in which they arrived.
 * - A group with an invocation span, or with a span whose children identify it as one, is an invocation.
 * - A process span belongs to the invocation that it encloses (see `matchProcesses`); one that encloses none is an invocation
 *   without other records.
 * - Any other group has a root that never ended (over OTLP) or was lost. It belongs to the only invocation that matches its
 *   step, resource, times, nodes and missing end; if several match, to one of them, marked ambiguous.
 * @returns invocations in the order in which their first records arrived.
 */
export function assignGroups(groups: Iterable<SpanGroup>): readonly InvocationParts[] {
  const invocations: InvocationParts[] = [];
  const processGroups: SpanGroup[] = [];
  const rest: SpanGroup[] = [];
  for (const group of groups) {
    if (group.recordCount === 0) continue;
    const spanId = invocationIdOf(group, LIKELY);
    if (spanId !== null) invocations.push(invocationOf(spanId, group));
    else if (group.processes.size > 0) processGroups.push(group);
    else rest.push(group);
  }
  const strays = straysAmong(rest, invocations);
  invocations.push(...invocationsWithoutSpan([...strays]));
  for (const group of matchProcesses(invocations, processGroups)) invocations.push(processAlone(group));
  invocations.sort(byId);
  const ofSteps = byStep(invocations);
  for (const group of rest.sort((a, b) => a.firstOffset - b.firstOffset)) {
    if (!strays.has(group)) assign(group, ofSteps.get(group.stepId ?? '') ?? invocations);
  }
  const byOffset = invocations.map((invocation) => ({ invocation, offset: invocation.firstOffset }));
  return byOffset.sort((a, b) => a.offset - b.offset).map(({ invocation }) => invocation);
}

/** Groups that match no invocation: there is none, or all certainly belong to other steps. */
function straysAmong(groups: readonly SpanGroup[], invocations: readonly InvocationParts[]): ReadonlySet<SpanGroup> {
  if (invocations.length === 0) return new Set(groups);
  const stepIds = new Set(invocations.map(({ own }) => own.stepId));
  if (stepIds.has(null)) return new Set();
  return new Set(groups.filter(({ stepId }) => stepId !== null && !stepIds.has(stepId)));
}

/** Invocations by the step that their resources name. */
function byStep(invocations: readonly InvocationParts[]): ReadonlyMap<string, readonly InvocationParts[]> {
  const found = new Map<string, InvocationParts[]>();
  for (const invocation of invocations) {
    const { stepId } = invocation;
    if (stepId === null) continue;
    const same = found.get(stepId);
    if (same === undefined) found.set(stepId, [invocation]);
    else same.push(invocation);
  }
  return found;
}

/** Returns the invocation span of the group: a received one, else the most likely one by its children. */
function invocationIdOf(group: SpanGroup, minEvidence: number): SpanId | null {
  if (group.invocations.size > 0) return [...group.invocations.keys()].sort()[0] ?? null;
  let best: SpanId | null = null;
  let bestEvidence = minEvidence - 1;
  for (const [id, evidence] of group.likelyInvocations) {
    if (evidence > bestEvidence || (evidence === bestEvidence && best !== null && id < best)) {
      best = id;
      bestEvidence = evidence;
    }
  }
  return best;
}

function invocationOf(spanId: SpanId, group: SpanGroup): InvocationParts {
  const parts = new InvocationParts(spanId, group.invocations.get(spanId) ?? null, group);
  // Two invocation spans joined by a parent or a link contradict each other.
  if (group.invocations.size > 1) parts.isAmbiguous = true;
  return parts;
}

function processAlone(group: SpanGroup): InvocationParts {
  const parts = new InvocationParts(null, null, group);
  parts.process = group.processes.values().next().value ?? null;
  return parts;
}

/** No span identifies an invocation: records of one step, or of one resource, form one. */
function invocationsWithoutSpan(groups: readonly SpanGroup[]): InvocationParts[] {
  const invocations: InvocationParts[] = [];
  for (const same of groupBy(groups, ({ originKey }) => originKey).values()) {
    const ids = same.flatMap((group) => invocationIdOf(group, 1) ?? []);
    const [first, ...others] = same;
    if (first === undefined) continue;
    const parts = new InvocationParts(ids.length === 1 ? (ids[0] ?? null) : null, null, first);
    parts.groups.push(...others);
    invocations.push(parts);
  }
  return invocations;
}

/** Adds a group to the invocation that the evidence leaves. */
function assign(group: SpanGroup, invocations: readonly InvocationParts[]): void {
  const candidates = candidatesFor(group, invocations);
  if (candidates.length > 1) for (const candidate of candidates) candidate.isAmbiguous = true;
  // Among equals the one that began last: the beginning of the group is nearest to it.
  let chosen = candidates[0];
  for (const candidate of candidates) {
    if (chosen !== undefined && startOf(candidate) > startOf(chosen)) chosen = candidate;
  }
  chosen?.groups.push(group);
}

function candidatesFor(group: SpanGroup, invocations: readonly InvocationParts[]): readonly InvocationParts[] {
  if (invocations.length === 1) return invocations;
  if (invocations.length > MAX_CANDIDATES) return invocations.slice(0, 2);
  const { startTimeUnixNano: start, endTimeUnixNano: end } = group;
  let left = narrow(invocations, (invocation) => invocation.own.originKey === group.originKey);
  if (start === null || end === null) return left;
  left = narrow(left, (invocation) => invocation.mayEnclose(start, end));
  left = narrow(left, (invocation) => !knowsBetter(invocation, group));
  // A span whose record is missing has not ended: its invocation is one that did not end either.
  return group.isSpanless ? left : narrow(left, (invocation) => !invocation.hasInvocationEnd);
}

/** Returns whether a node of the group was processed in that invocation at other times. */
function knowsBetter(invocation: InvocationParts, group: SpanGroup): boolean {
  const { startTimeUnixNano: start, endTimeUnixNano: end } = group;
  if (start === null || end === null) return false;
  for (const uniqueId of group.uniqueIds) {
    if (invocation.own.nodes.get(uniqueId)?.excludes(start, end)) return true;
  }
  return false;
}

/** Returns those that pass, or all where none does: evidence narrows, it never leaves nothing. */
function narrow(
  invocations: readonly InvocationParts[],
  test: (invocation: InvocationParts) => boolean,
): readonly InvocationParts[] {
  if (invocations.length < 2) return invocations;
  const left = invocations.filter(test);
  return left.length === 0 ? invocations : left;
}

function startOf(invocation: InvocationParts): UnixNano {
  return invocation.own.startTimeUnixNano ?? 0n;
}

function byId(a: InvocationParts, b: InvocationParts): number {
  const [first, second] = [a.spanId ?? a.process?.spanId ?? '', b.spanId ?? b.process?.spanId ?? ''];
  return first < second ? -1 : first > second ? 1 : 0;
}

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
