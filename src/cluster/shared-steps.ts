import type { Logger } from '../core/logger.js';
import { reasonOf } from '../core/reason-of.js';
import type { TraceId } from '../record/ids.js';
import type { StepListener } from '../run/run-event.js';
import type { SharedTraceStore } from '../storage/cluster/shared-trace-store.js';

/** What steps are told on with. */
export interface SharedStepsDeps {
  readonly traces: Pick<SharedTraceStore, 'noteSteps'>;
  readonly processId: () => string;
  /** A trace may have become this process's. */
  readonly onNoted: () => void;
  readonly logger: Logger;
}

/** Tells whichever process has a trace that more is known of its steps; one that nobody has is taken up again. */
export class SharedSteps implements StepListener {
  constructor(private readonly deps: SharedStepsDeps) {}

  onStepChanged(traceIds: readonly TraceId[]): void {
    const { traces, processId, onNoted, logger } = this.deps;
    if (traceIds.length === 0) return;
    traces.noteSteps(processId(), traceIds).then(onNoted, (error: unknown) => {
      logger.error(
        { error: reasonOf(error) },
        'failed to report updated steps; the verdicts of their runs may be late',
      );
    });
  }
}
