import type { UnixNano } from '../record/unix-nano.js';
import { countVerdicts, selectedNodes } from './count-verdicts.js';
import type { InvocationParts } from './invocation-parts.js';
import { NodeFacts } from './node-facts.js';
import type { InvocationStep, InvocationSummary, NodeCounts } from './run-summary.js';
import { type VerdictEvidence, type VerdictWithReason, verdictOf, withEnding } from './verdict.js';

/** The step of an invocation. */
export interface ToldStep {
  readonly step: InvocationStep;
  /** Whether the step has no other invocation, as far as known. */
  readonly isSole: boolean;
}

/**
 * Sums up an invocation; a pure function of its parts.
 * @param index its position in the trace, from 1.
 * @param isOver whether it has ended, or is silent for good: then it gets its verdict.
 * @param told the step that it belongs to, where somebody said so
 */
export function summarizeInvocation(
  parts: InvocationParts,
  index: number,
  isOver: boolean,
  told: ToldStep | null = null,
): InvocationSummary {
  const nodes = nodesOf(parts);
  const nodeCounts = countVerdicts(selectedNodes(nodes.values()));
  const { invocation } = parts;
  const verdict = isOver ? judge(evidenceOf(parts, nodes, nodeCounts), told) : null;
  return {
    index,
    spanId: parts.spanId,
    processSpanId: parts.process?.spanId ?? null,
    outerParentSpanId: parts.outerParentSpanId,
    hasInvocationEnd: parts.hasInvocationEnd,
    hasProcessEnd: parts.hasProcessEnd,
    isAmbiguous: parts.isAmbiguous,
    command: invocation?.command ?? null,
    rawCommand: invocation?.rawCommand ?? null,
    resource: parts.resource,
    startTimeUnixNano: parts.startTimeUnixNano,
    endTimeUnixNano: parts.endTimeUnixNano,
    verdict: verdict?.verdict ?? null,
    statusMessage: verdict?.statusMessage ?? null,
    totalErrors: invocation?.totalErrors ?? null,
    totalWarnings: invocation?.totalWarnings ?? null,
    nodeCounts,
    recordCount: parts.groups.reduce((sum, group) => sum + group.recordCount, 0),
    parquetFile: index === 1 ? 'telemetry.parquet' : `telemetry-${index}.parquet`,
    step: told?.step ?? null,
  };
}

function judge(evidence: VerdictEvidence, told: ToldStep | null): VerdictWithReason {
  const verdict = verdictOf(evidence);
  const ending = told?.step.ending ?? null;
  return told === null || ending === null ? verdict : withEnding(verdict, evidence, { ending, isSole: told.isSole });
}

/** The nodes of all groups of an invocation; those of its only group as they are. */
function nodesOf({ groups }: InvocationParts): ReadonlyMap<string, NodeFacts> {
  const withNodes = groups.filter((group) => group.nodes.size > 0);
  const [first, ...others] = withNodes;
  if (first === undefined || others.length === 0) return first?.nodes ?? new Map();
  const merged = new Map<string, NodeFacts>(first.nodes);
  const own = new Set<NodeFacts>();
  for (const group of others) {
    for (const [uniqueId, facts] of group.nodes) {
      const known = merged.get(uniqueId);
      const target = known !== undefined && own.has(known) ? known : new NodeFacts();
      if (known !== undefined && known !== target) target.merge(known);
      target.merge(facts);
      own.add(target);
      merged.set(uniqueId, target);
    }
  }
  return merged;
}

function evidenceOf(
  parts: InvocationParts,
  nodes: ReadonlyMap<string, NodeFacts>,
  nodeCounts: NodeCounts,
): VerdictEvidence {
  return {
    hasInvocationEnd: parts.hasInvocationEnd,
    hasProcessEnd: parts.hasProcessEnd,
    status: parts.invocation?.status ?? null,
    totalErrors: parts.invocation?.totalErrors ?? null,
    rawCommand: parts.invocation?.rawCommand ?? null,
    nodeCounts,
    firstFailure: firstFailureOf(nodes),
    interruptedAtUnixNano: earliest(parts.groups.map((group) => group.interruptedAtUnixNano)),
    hasCancelMessage: parts.groups.some((group) => group.hasCancelMessage),
    errorLogCount: parts.groups.reduce((sum, group) => sum + group.errorLogCount, 0),
    isBareProcess: parts.groups.every((group) => group.isBareProcess),
  };
}

function firstFailureOf(nodes: ReadonlyMap<string, NodeFacts>): VerdictEvidence['firstFailure'] {
  let first: VerdictEvidence['firstFailure'] = null;
  for (const [uniqueId, facts] of nodes) {
    const timeUnixNano = facts.failureTimeUnixNano;
    if (timeUnixNano === null) continue;
    if (first === null || timeUnixNano < first.timeUnixNano) first = { uniqueId, timeUnixNano };
  }
  return first;
}

function earliest(times: readonly (UnixNano | null)[]): UnixNano | null {
  let first: UnixNano | null = null;
  for (const time of times) if (time !== null && (first === null || time < first)) first = time;
  return first;
}
