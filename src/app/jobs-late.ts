import type { Component } from '../component/component.js';
import type { Configuration } from '../config/configuration.js';
import type { StepOutput } from '../store/job-run-store.js';
import type { JobRunning, JobRunningDeps } from './job-running.js';

/** What runs jobs, loaded where there is something to run, or when somebody first asks for a run. */
export class JobsLate implements Component {
  readonly name = 'jobs';
  private opening: Promise<JobRunning> | undefined;

  constructor(
    private readonly configuration: Configuration,
    private readonly deps: JobRunningDeps,
  ) {}

  async start(): Promise<void> {
    const isDeclared = this.configuration.jobs.some(({ commands }) => commands.length > 0);
    if (isDeclared || (await this.deps.state.jobRuns.hasWork())) await this.open();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await (await this.opening)?.runner.shutdown(deadline);
  }

  /** What a step's command has written, as far as it is kept. @throws StoreError */
  async outputOf(stepId: string): Promise<StepOutput | undefined> {
    const live = (await this.opening)?.runner.outputOf(stepId);
    return live ?? (await this.deps.state.jobRuns.outputsOf([stepId])).get(stepId);
  }

  /** The running parts. @throws StoreError */
  open(): Promise<JobRunning> {
    this.opening ??= this.load();
    return this.opening;
  }

  private async load(): Promise<JobRunning> {
    const { JobRunning } = await import('./job-running.js');
    const running = new JobRunning(this.configuration, this.deps);
    await running.runner.start();
    return running;
  }
}
