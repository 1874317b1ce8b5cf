import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { LocalExecutionBook } from '../run/local-execution-book.js';
import type { ExecutionStore } from '../store/execution-store.js';
import type { JobRunStore } from '../store/job-run-store.js';
import type { JobDefinition } from './job-definition.js';
import type { JobLauncher } from './job-launcher.js';

/** What runs are made with. */
export interface JobRunnerDeps {
  /** By name. */
  readonly jobs: ReadonlyMap<string, JobDefinition>;
  readonly queue: JobRunStore;
  readonly executions: Pick<ExecutionStore, 'beginIn' | 'cancel' | 'findStep' | 'listSteps'>;
  readonly book: Pick<LocalExecutionBook, 'end'>;
  readonly launcher: Pick<JobLauncher, 'launch' | 'environmentOf'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Makes ids up that were never there. */
  readonly newId: () => string;
}
