import type { Logger } from '../component/logger.js';
import type { RunEvent, RunListener } from './run-event.js';

/** Says in the program's log when a run starts and how its commands end. */
export class RunLog implements RunListener {
  constructor(private readonly logger: Logger) {}

  async onRunEvent(event: RunEvent): Promise<void> {
    const { traceId } = event.run;
    switch (event.type) {
      case 'started':
        this.logger.info({ traceId }, 'a run started');
        return;
      case 'invocationEnded': {
        const { command, verdict, recordCount, nodeCounts } = event.invocation;
        const { error, failed } = nodeCounts;
        const message = event.isRevision ? 'late records joined a command' : 'a command ended';
        this.logger.info({ traceId, command, verdict, errors: error, failedTests: failed, recordCount }, message);
        return;
      }
      case 'finished':
        if (event.isRepeated !== true) this.logger.info({ traceId }, 'a run is finished');
        return;
    }
  }
}
