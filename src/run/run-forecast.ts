import type { RunEnding, RunJudgement } from './run-judgement.js';
import type { InvocationSummary } from './run-summary.js';

/**
 * How a run ends if no more records come: worked out when its records' sum is dropped from memory, so that its log need
 * not be read again only to say so. A kilobyte or two.
 */
export class RunForecast {
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
