import { type AppendedPiece, loggedRecords } from '../sink/appended.js';
import type { LoggedRecord } from '../sink/record-log.js';
import { InvocationAssigner } from './invocation-assigner.js';
import type { InvocationParts } from './invocation-parts.js';
import { summarizeInvocation } from './run-reducer.js';
import type { InvocationSummary } from './run-summary.js';
import type { RunTrackerConfig } from './run-tracker-config.js';

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

  judge(nowMs: number): RunJudgement {
    let nextEndMs: number | null = null;
    const invocations = this.assigner.invocations.map((parts, position) => {
      const endMs = this.endOf(parts);
      const isOver = endMs <= nowMs;
      if (!isOver) nextEndMs = Math.min(endMs, nextEndMs ?? endMs);
      return summarizeInvocation(parts, position + 1, isOver);
    });
    return { invocations, nextEndMs };
  }

  /** When an invocation is over unless more of its records come. */
  private endOf(parts: InvocationParts): number {
    const { hasInvocationEnd, hasProcessEnd, lastArrivalMs } = parts;
    if (hasInvocationEnd && hasProcessEnd) return lastArrivalMs + this.times.quietAfterProcessMs;
    if (hasInvocationEnd || hasProcessEnd) return lastArrivalMs + this.times.quietAfterInvocationMs;
    return lastArrivalMs + this.times.silenceMs;
  }
}
