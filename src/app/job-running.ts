import { randomUUID } from 'node:crypto';
import type { Clock } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import { JobDesk } from '../job/job-desk.js';
import { JobLauncher, type JobLauncherConfig } from '../job/job-launcher.js';
import { JobRunner } from '../job/job-runner.js';
import type { LocalExecutionBook } from '../run/local-execution-book.js';
import type { State } from '../store/state.js';

/** What running jobs takes from outside. */
export interface JobRunningDeps
  extends Pick<JobLauncherConfig, 'nodePath' | 'entryPath' | 'environment' | 'credentials'> {
  readonly state: Pick<State, 'jobRuns' | 'executions'>;
  readonly book: Pick<LocalExecutionBook, 'end'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The parts that run jobs of a configuration, not yet started. */
export class JobRunning {
  readonly runner: JobRunner;
  readonly desk: JobDesk;

  constructor(configuration: Configuration, deps: JobRunningDeps) {
    const { clock, logger, book, nodePath, entryPath, environment, credentials } = deps;
    const { jobRuns: queue, executions } = deps.state;
    const jobs = new Map(configuration.jobs.map((job) => [job.name, job]));
    const dataFolder = configuration['data-dir'];
    const launcher = new JobLauncher({ nodePath, entryPath, environment, credentials, dataFolder }, clock);
    const newId = () => randomUUID();
    this.runner = new JobRunner(
      { maxRunning: configuration['max-running-jobs'], isShared: configuration.processes === 'several' },
      { jobs, queue, executions, book, launcher, clock, logger, newId },
    );
    this.desk = new JobDesk({ jobs, queue, executions, runner: this.runner, clock, newId });
  }
}
