import type { TraceId } from '../../record/ids.js';
import type { ExecutionBook } from '../../run/execution-book.js';
import type { CommandEnding } from '../../store/command-ending.js';
import type { PlatformRun, PlatformStep } from './platform-run.js';

/** Enters hosted runs into the book of runs: a run with all its steps at the same positions, their commands and ends. */
export class HostedSteps {
  /** @param platform base URL, which tells equal numbers of two platforms apart */
  constructor(
    private readonly book: ExecutionBook,
    private readonly platform: string,
  ) {}

  /** Begins every step of a run; what is known already stays. @throws ExecutionBookError */
  async begin(accountId: string, run: PlatformRun): Promise<void> {
    let startedUnixMs = run.startedUnixMs ?? run.createdUnixMs ?? 0;
    for (const step of run.steps) {
      startedUnixMs = step.startedUnixMs ?? startedUnixMs;
      await this.book.begin({
        stepId: this.stepId(accountId, run, step),
        runKey: `${this.platform}/${accountId}/${run.runId}`,
        job: run.jobName ?? run.jobId ?? `account ${accountId}`,
        environment: run.environmentName ?? run.environmentId,
        project: run.projectId,
        reason: run.cause,
        command: [step.command ?? step.name],
        startedUnixMs,
        isLast: step === run.steps.at(-1),
      });
    }
  }

  /** What the records of a step carry as `run_bridge.step.id`. */
  stepId(accountId: string, { runId }: PlatformRun, { index }: PlatformStep): string {
    return `${this.platform}/${accountId}/${runId}/${index}`;
  }

  /** A step has ended, and its records are there as far as there are any. @throws ExecutionBookError */
  async end(accountId: string, run: PlatformRun, step: PlatformStep, traceIds: readonly TraceId[]): Promise<void> {
    const stepId = this.stepId(accountId, run, step);
    for (const traceId of traceIds) await this.book.attach(stepId, traceId);
    const endedUnixMs = step.finishedUnixMs ?? run.finishedUnixMs ?? step.startedUnixMs ?? run.createdUnixMs ?? 0;
    await this.book.end(stepId, endingOf(step), endedUnixMs);
  }
}

/** The platform tells no exit codes: that of a failed step is the engine's usual one, a cancelled one was told to end. */
function endingOf({ outcome }: PlatformStep): CommandEnding {
  switch (outcome) {
    case 'success':
      return { kind: 'exited', exitCode: 0 };
    case 'error':
      return { kind: 'exited', exitCode: 1 };
    case 'canceled':
      return { kind: 'killed', signal: 'SIGTERM' };
    case 'unfinished':
      return { kind: 'notStarted', reason: 'the platform did not run it' };
  }
}
