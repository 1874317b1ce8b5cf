import type { PulledRun } from '../../source/platform/pulled-run.js';
import { EXIT, type ExitCode } from '../exit-code.js';

/** Counts what a pull brought in, and says it. */
export class PullReport {
  private readonly counts = { taken: 0, empty: 0, incomplete: 0, known: 0, gone: 0 };
  private recordCount = 0;
  private rejectCount = 0;
  private brokenCount = 0;
  private failedCount = 0;

  /** @returns lines on the run: what came of it, and what did not. */
  add(pulled: PulledRun): readonly string[] {
    const { run, steps } = pulled;
    const name = `run ${run.runId} (${run.jobName ?? `job ${run.jobId ?? 'unknown'}`}, ${run.status})`;
    if (!run.isComplete) {
      this.counts.incomplete += 1;
      return [`${name}: not complete yet`];
    }
    const taken = steps.filter(({ outcome }) => outcome === 'taken' || outcome === 'known');
    const recordCount = steps.reduce((sum, step) => sum + step.recordCount, 0);
    this.recordCount += recordCount;
    const troubles = steps.flatMap(({ step, outcome, rejectCount, reason }) => {
      if (outcome === 'broken') this.brokenCount += 1;
      if (outcome === 'failed') this.failedCount += 1;
      this.rejectCount += rejectCount;
      const rejects = rejectCount > 0 ? [`${count(rejectCount, 'record')} could not be read`] : [];
      const parts = [...(reason === null ? [] : [reason]), ...rejects];
      return parts.length === 0 ? [] : [`  step ${step.index}: ${parts.join('; ')}`];
    });
    if (taken.length === 0 && troubles.length === 0) {
      this.counts.empty += 1;
      return [`${name}: no telemetry${pulled.isFinal ? '' : ' yet; it may come within some minutes'}`];
    }
    this.counts.taken += 1;
    return [`${name}: ${count(recordCount, 'record')} of ${count(taken.length, 'step')}`, ...troubles];
  }

  /** A run was brought in before. */
  addKnown(): void {
    this.counts.known += 1;
  }

  /** A run went away while it was asked for. */
  addGone(): void {
    this.counts.gone += 1;
  }

  /** @param where for example `pulled into ./data/runs` */
  summary(where: string): string {
    const { taken, empty, incomplete, known, gone } = this.counts;
    const rest = [
      [empty, 'without telemetry'],
      [incomplete, 'not complete yet'],
      [known, 'there already'],
      [gone, 'gone'],
    ] as const;
    const further = rest.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
    return [`${where}: ${count(taken, 'run')}, ${count(this.recordCount, 'record')}`, ...further].join('; ');
  }

  /** @param isOne whether a single run was asked for, which then is to be there */
  exitCode(isOne: boolean): ExitCode {
    if (this.failedCount > 0 || (isOne && this.counts.incomplete + this.counts.gone > 0)) return EXIT.failed;
    return this.brokenCount + this.rejectCount > 0 ? EXIT.unreadable : EXIT.ok;
  }
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
