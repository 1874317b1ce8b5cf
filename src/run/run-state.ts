import type { LoggedRecord } from '../log/record-log.js';
import { type AppendedPiece, loggedRecords } from '../log/trace-log.js';
import { accountOf } from '../record/resource.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { StepRow } from '../storage/execution-store.js';
import { InvocationAssigner } from './invocation-assigner.js';
import type { InvocationParts } from './invocation-parts.js';
import { NodeFacts } from './node-outcome.js';
import type { InvocationStep, InvocationSummary, NodeCounts } from './run-summary.js';
import type { RunTrackerConfig } from './run-tracker-config.js';
import type { TraceSteps } from './trace-steps.js';
import {
  countVerdicts,
  selectedNodes,
  type VerdictEvidence,
  type VerdictWithReason,
  verdictOf,
  withEnding,
} from './verdict.js';

/** The waiting times of a tracker's configuration. */
export type EndingTimes = Pick<RunTrackerConfig, 'quietAfterProcessMs' | 'quietAfterInvocationMs' | 'silenceMs'>;

/** Maps an invocation to its command. */
type StepFinder = Pick<TraceSteps, 'stepOf'>;

/** A trace with more invocations has no pending verdict: it would be as large as the state it replaces. */
const MAX_FORECAST = 8;

/** What a trace's records add up to so far. */
export class RunState {
  private readonly assigner = new InvocationAssigner();

  constructor(private readonly times: EndingTimes) {}

  /** Memory that it takes, in bytes, about. */
  get heldBytes(): number {
    return this.assigner.heldBytes;
  }

  /** @param arrivalMs when they arrived, in monotonic milliseconds */
  add(records: readonly LoggedRecord[], arrivalMs: number): void {
    for (const record of records) this.assigner.add(record, arrivalMs);
  }

  /** @param pieces as they were appended; lent for the time of the call. */
  addPieces(pieces: readonly AppendedPiece[], arrivalMs: number): void {
    for (const piece of pieces) {
      if (piece.rows !== undefined) this.assigner.addRows(piece.rows, piece.offset, arrivalMs);
      else this.add(loggedRecords(piece), arrivalMs);
    }
  }

  /** Ids of the steps that its invocations' resources name. */
  get stepIds(): ReadonlySet<string> {
    return new Set(this.assigner.invocations.flatMap(({ stepId }) => stepId ?? []));
  }

  /** @param steps the commands; left out if no commands run here */
  judge(nowMs: number, steps?: StepFinder): RunJudgement {
    const { invocations: all } = this.assigner;
    const rows = all.map((parts) => rowOf(parts, steps));
    const invocations = all.map((parts, position) => {
      const row = rows[position];
      const isOver = this.endOf(parts, row, nowMs) <= nowMs;
      return summarizeInvocation(parts, position + 1, isOver, row === undefined ? null : toldStep(row, rows));
    });
    return { invocations, nextEndMs: this.endingOf(all, nowMs, steps).nextEndMs };
  }

  /** As `judge`, without summing up a single invocation. */
  ending(nowMs: number, steps?: StepFinder): RunEnding {
    return this.endingOf(this.assigner.invocations, nowMs, steps);
  }

  /**
   * Its verdict if no more records arrive and no steps change; `undefined` if unknown: if
   * invocations end at different times, one after the other, or belong to steps.
   */
  forecast(logBytes: number): PendingVerdict | undefined {
    const { invocations } = this.assigner;
    const [first] = invocations;
    if (first === undefined || invocations.length > MAX_FORECAST) return undefined;
    const endMs = this.endOf(first, undefined, 0);
    const isKnown = invocations.every((parts) => parts.stepId === null && this.endOf(parts, undefined, 0) === endMs);
    if (!isKnown) return undefined;
    const summaries = invocations.map((parts, position) => summarizeInvocation(parts, position + 1, true, null));
    return new PendingVerdict(summaries, endMs, logBytes);
  }

  private endingOf(invocations: readonly InvocationParts[], nowMs: number, steps?: StepFinder): RunEnding {
    let nextEndMs: number | null = null;
    let overCount = 0;
    for (const parts of invocations) {
      const endMs = this.endOf(parts, rowOf(parts, steps), nowMs);
      if (endMs <= nowMs) overCount += 1;
      else nextEndMs = Math.min(endMs, nextEndMs ?? endMs);
    }
    return { count: invocations.length, overCount, nextEndMs };
  }

  /** When an invocation is over unless more of its records come. */
  private endOf(parts: InvocationParts, step: StepRow | undefined, nowMs: number): number {
    const ending = step?.ending ?? null;
    // The program that ran its command has delivered everything and reported its end.
    if (ending !== null && ending.kind !== 'unknown') return Number.NEGATIVE_INFINITY;
    const { hasInvocationEnd, hasProcessEnd, lastArrivalMs } = parts;
    // No program is left that would deliver more than what is in transit.
    if ((hasInvocationEnd && hasProcessEnd) || ending !== null) return lastArrivalMs + this.times.quietAfterProcessMs;
    if (hasInvocationEnd || hasProcessEnd) return lastArrivalMs + this.times.quietAfterInvocationMs;
    // A command that is known to be running may be silent for any time.
    return (step?.ending === null ? nowMs : lastArrivalMs) + this.times.silenceMs;
  }
}

function rowOf(parts: InvocationParts, steps: StepFinder | undefined): StepRow | undefined {
  return steps?.stepOf(parts.stepId, parts.startTimeUnixNano, accountOf(parts.resource));
}

function toldStep(row: StepRow, rows: readonly (StepRow | undefined)[]): ToldStep {
  const isSole = row.traceCount <= 1 && rows.filter((other) => other?.stepId === row.stepId).length === 1;
  const { stepId, stepIndex, run, ending } = row;
  const { runId, runKey, job, environment, project, reason } = run;
  const step: InvocationStep = { stepId, stepIndex, runId, runKey, job, environment, project, reason, ending };
  return { step, isSole };
}

/** A run's invocations at a point in time. */
export interface RunJudgement {
  /** With a verdict each where it is over. */
  readonly invocations: readonly InvocationSummary[];
  /** When the next of them is over unless more records come, in monotonic milliseconds; `null` when all are. */
  readonly nextEndMs: number | null;
}

/** The invocations of a run that have ended at a point in time, without their summaries, which are expensive. */
export interface RunEnding {
  readonly count: number;
  readonly overCount: number;
  /** As in `RunJudgement`. */
  readonly nextEndMs: number | null;
}

/**
 * The verdict of a run if no more records arrive: computed when its state is evicted, so that its log need
 * not be read again for it. One or two kilobytes.
 */
export class PendingVerdict {
  /**
   * @param invocations with their verdicts
   * @param endMs when all of them are over, in monotonic milliseconds
   * @param logBytes length of the record log that this is about
   */
  constructor(
    private readonly invocations: readonly InvocationSummary[],
    readonly endMs: number,
    readonly logBytes: number,
  ) {}

  /** Memory that counts against the bound of open runs: none that is worth counting. */
  readonly heldBytes = 0;

  /** As that of `RunState`. */
  judge(nowMs: number): RunJudgement {
    if (nowMs >= this.endMs) return { invocations: this.invocations, nextEndMs: null };
    const invocations = this.invocations.map((each) => ({ ...each, verdict: null, statusMessage: null }));
    return { invocations, nextEndMs: this.endMs };
  }

  /** As that of `RunState`. */
  ending(nowMs: number): RunEnding {
    const count = this.invocations.length;
    const isOver = nowMs >= this.endMs;
    return { count, overCount: isOver ? count : 0, nextEndMs: isOver ? null : this.endMs };
  }
}

/** The step of an invocation. */
export interface ToldStep {
  readonly step: InvocationStep;
  /** Whether the step has no other invocation, as far as known. */
  readonly isSole: boolean;
}

/**
 * Summarises an invocation; a pure function of its parts.
 * @param index its position in the trace, from 1.
 * @param isOver whether it has ended, or is silent permanently: then it gets its verdict.
 * @param told its step, if registered
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
