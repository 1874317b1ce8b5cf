import type { LogFields, Logger } from '../core/logger.js';
import type { RunEvent, RunListener } from './run-event.js';
import type { InvocationSummary, RunSummary } from './verdict.js';

/** Logs when a run starts and how its commands end, with job and step if known. */
export class RunLog implements RunListener {
  constructor(private readonly logger: Logger) {}

  async onRunEvent(event: RunEvent): Promise<void> {
    const { traceId } = event.run;
    switch (event.type) {
      case 'started':
        if (event.isRepeated !== true) this.logger.info({ traceId, ...stepsOf(event.run) }, 'a run started');
        return;
      case 'invocationEnded': {
        const { command, verdict, recordCount, nodeCounts } = event.invocation;
        const { error, failed } = nodeCounts;
        const message = event.isRevision ? 'more is known of a command that had ended' : 'a command ended';
        const counts = { errors: error, failedTests: failed, recordCount };
        this.logger.info({ traceId, command, verdict, ...stepOf(event.invocation), ...counts }, message);
        return;
      }
      case 'finished':
        if (event.isRepeated !== true) this.logger.info({ traceId, ...stepsOf(event.run) }, 'finished a run');
        return;
    }
  }
}

/** `undefined` fields are left out of the line. */
function stepOf({ step }: InvocationSummary): LogFields {
  if (step === null) return {};
  const { job, runId: run, stepIndex, ending } = step;
  const exitCode = ending?.kind === 'exited' ? ending.exitCode : undefined;
  const signal = ending?.kind === 'killed' ? ending.signal : undefined;
  return { job, run, step: stepIndex, exitCode, signal };
}

/** Returns the job, and the steps that the trace holds: `step=2`, or `step=1,2` of several. */
function stepsOf({ invocations }: RunSummary): LogFields {
  const steps = invocations.flatMap(({ step }) => step ?? []);
  const [first] = steps;
  if (first === undefined) return {};
  const own = steps.filter(({ runId }) => runId === first.runId).map(({ stepIndex }) => stepIndex);
  const step = [...new Set(own)].sort((a, b) => a - b).join(',');
  return { job: first.job, run: first.runId, step };
}
