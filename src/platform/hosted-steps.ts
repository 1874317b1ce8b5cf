import { createHash } from 'node:crypto';
import { startOf } from '../core/text.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { StepRegistry } from '../run/step-registry.js';
import type { CommandEnding } from '../storage/steps.js';
import type { PlatformRun, PlatformStep } from './platform-run.js';

/** The longest names and reasons that the registry takes. */
const MAX_NAME_LENGTH = 200;
const MAX_REASON_LENGTH = 2_000;

/** Enters hosted runs into the registry of steps: a run with all its steps at the same positions, their commands and ends. */
export class HostedSteps {
  private readonly host: string;
  private readonly digest: string;

  /** @param platform base URL, which tells equal numbers of two platforms apart */
  constructor(
    private readonly registry: StepRegistry,
    platform: string,
  ) {
    this.host = new URL(platform).host;
    this.digest = createHash('sha256').update(platform).digest('hex').slice(0, 12);
  }

  /** Begins every step of a run; what is known already stays. @throws StepRegistryError */
  async begin(accountId: string, run: PlatformRun): Promise<void> {
    let startedUnixMs = run.startedUnixMs ?? run.createdUnixMs ?? 0;
    for (const step of run.steps) {
      startedUnixMs = step.startedUnixMs ?? startedUnixMs;
      await this.registry.register({
        stepId: this.stepId(accountId, run, step),
        runKey: nameOf(`${this.host}/${accountId}/${run.runId}`),
        job: nameOf(run.jobName ?? run.jobId) ?? `account ${accountId}`,
        environment: nameOf(run.environmentName ?? run.environmentId),
        project: nameOf(run.projectId),
        reason: run.cause === null ? null : startOf(run.cause, MAX_REASON_LENGTH),
        command: [step.command ?? step.name],
        startedUnixMs,
        isLast: step === run.steps.at(-1),
      });
    }
  }

  /** What the records of a step carry as `run_bridge.step.id`. */
  stepId(accountId: string, { runId }: PlatformRun, { index }: PlatformStep): string {
    return `hosted:${this.digest}:${accountId}:${runId}:${index}`;
  }

  /** A step has ended, and its records are there as far as there are any. @throws StepRegistryError */
  async end(accountId: string, run: PlatformRun, step: PlatformStep, traceIds: readonly TraceId[]): Promise<void> {
    const stepId = this.stepId(accountId, run, step);
    for (const traceId of traceIds) await this.registry.attach(stepId, traceId);
    const endedUnixMs = step.finishedUnixMs ?? run.finishedUnixMs ?? step.startedUnixMs ?? run.createdUnixMs ?? 0;
    await this.registry.end(stepId, endingOf(step), endedUnixMs);
  }
}

function nameOf(text: string | null): string | null {
  return startOf(text ?? '', MAX_NAME_LENGTH).trim() || null;
}

/** The platform reports no exit codes: a failed step gets the engine's usual one, a cancelled one that of an interrupted engine. */
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
