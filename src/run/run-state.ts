import { type AppendedPiece, loggedRecords } from '../sink/appended.js';
import type { LoggedRecord } from '../sink/record-log.js';
import type { StepRow } from '../store/execution-store.js';
import { InvocationAssigner } from './invocation-assigner.js';
import type { InvocationParts } from './invocation-parts.js';
import { summarizeInvocation, type ToldStep } from './run-reducer.js';
import type { InvocationStep, InvocationSummary } from './run-summary.js';
import type { RunTrackerConfig } from './run-tracker-config.js';
import type { TraceSteps } from './trace-steps.js';

/** The waiting times of a tracker's configuration. */
export type EndingTimes = Pick<RunTrackerConfig, 'quietAfterProcessMs' | 'quietAfterInvocationMs' | 'silenceMs'>;

/** A run's invocations at one moment. */
export interface RunJudgement {
  /** With a verdict each where it is over. */
  readonly invocations: readonly InvocationSummary[];
  /** When the next of them is over unless more records come, in monotonic milliseconds; `null` when all are. */
  readonly nextEndMs: number | null;
}

/** What a trace's records add up to so far. */
export class RunState {
  private readonly assigner = new InvocationAssigner();

  constructor(private readonly times: EndingTimes) {}

  /** Memory that it takes, in bytes, about. */
  get heldBytes(): number {
    return this.assigner.heldBytes;
  }

  /** @param arrivalMs when they came, in monotonic milliseconds */
  add(records: readonly LoggedRecord[], arrivalMs: number): void {
    for (const record of records) this.assigner.add(record, arrivalMs);
  }

  /** @param pieces as they were appended; lent for the time of the call. */
  addPieces(pieces: readonly AppendedPiece[], arrivalMs: number): void {
    for (const piece of pieces) {
      if (piece.spans !== undefined) this.assigner.addSpans(piece.spans, piece.offset, arrivalMs);
      else this.add(loggedRecords(piece), arrivalMs);
    }
  }

  /** Ids of the steps that its invocations' resources name. */
  get stepIds(): ReadonlySet<string> {
    return new Set(this.assigner.invocations.flatMap(({ stepId }) => stepId ?? []));
  }

  /** @param steps whose commands they were; left out where nobody runs commands here */
  judge(nowMs: number, steps?: Pick<TraceSteps, 'stepOf'>): RunJudgement {
    const { invocations: all } = this.assigner;
    const rows = all.map(({ stepId, startTimeUnixNano }) => steps?.stepOf(stepId, startTimeUnixNano));
    let nextEndMs: number | null = null;
    const invocations = all.map((parts, position) => {
      const row = rows[position];
      const endMs = this.endOf(parts, row, nowMs);
      const isOver = endMs <= nowMs;
      if (!isOver) nextEndMs = Math.min(endMs, nextEndMs ?? endMs);
      return summarizeInvocation(parts, position + 1, isOver, row === undefined ? null : toldStep(row, rows));
    });
    return { invocations, nextEndMs };
  }

  /** When an invocation is over unless more of its records come. */
  private endOf(parts: InvocationParts, step: StepRow | undefined, nowMs: number): number {
    // Whoever ran its command has handed over everything, and says that it ended.
    if (step?.ending !== undefined && step.ending !== null && step.ending.kind !== 'unknown')
      return Number.NEGATIVE_INFINITY;
    const { hasInvocationEnd, hasProcessEnd, lastArrivalMs } = parts;
    if (hasInvocationEnd && hasProcessEnd) return lastArrivalMs + this.times.quietAfterProcessMs;
    if (hasInvocationEnd || hasProcessEnd) return lastArrivalMs + this.times.quietAfterInvocationMs;
    // A command that is known to be under way may be silent for as long as it likes.
    return (step?.ending === null ? nowMs : lastArrivalMs) + this.times.silenceMs;
  }
}

function toldStep(row: StepRow, rows: readonly (StepRow | undefined)[]): ToldStep {
  const isSole = row.traceCount <= 1 && rows.filter((other) => other?.stepId === row.stepId).length === 1;
  const { stepId, stepIndex, run, ending } = row;
  const { runId, runKey, job, environment, project, reason } = run;
  const step: InvocationStep = { stepId, stepIndex, runId, runKey, job, environment, project, reason, ending };
  return { step, isSole };
}
