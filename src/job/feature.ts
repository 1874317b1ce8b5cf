import type { LiveRuns } from '../api/live-runs.js';
import type { RunMeasures } from '../api/run-measures.js';
import type { Configuration } from '../config/configuration.js';
import { joinCommandLine } from '../config/jobs.js';
import type { Clock } from '../core/clock.js';
import { lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import { type JobFacts, runShape } from '../platform/feature.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { CatalogJob } from '../storage/scope-catalog.js';
import type { State } from '../storage/state.js';
import type { CancelState } from '../web/page/page-deps.js';
import type { StepOutput } from './job-run-store.js';
import type { JobLauncherConfig } from './launcher.js';
import type { JobRunner } from './runner.js';
import type { JobService } from './service.js';

// The door of jobs: other folders import only this file. The rest is loaded when there is something to run.

export type { StepOutput } from './job-run-store.js';

/** The settings of jobs. */
export type JobConfig = Pick<
  Configuration,
  'data-dir' | 'jobs' | 'max-running-jobs' | 'processes' | 'redaction' | 'public-url'
>;

/** Parts of the program that jobs use. */
export interface JobHost extends Pick<JobLauncherConfig, 'nodePath' | 'entryPath' | 'environment' | 'credentials'> {
  readonly state: Pick<State, 'db' | 'observer' | 'fence' | 'executions' | 'catalog'>;
  readonly registry: Pick<LocalStepRegistry, 'end' | 'endUnseen'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf' | 'whenMeasured' | 'logsOf'>;
  readonly live: Pick<LiveRuns, 'of'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The program's version. */
  readonly version: string;
}

/** Creates the jobs of a configuration; they have to be started. */
export function createJobs(config: JobConfig, host: JobHost): Jobs {
  return new Jobs(config, host);
}

/** The parts that run jobs. */
interface JobParts {
  readonly runner: JobRunner;
  readonly service: JobService;
}

/** Runs the jobs that the configuration declares. The parts that run them are loaded when a job has commands, or when a run is first requested. */
export class Jobs implements Feature, Component {
  readonly name = 'jobs';
  readonly components = [this];
  private readonly facts: ReadonlyMap<string, JobFacts>;
  private readonly parts = lazy(() => this.load());

  constructor(
    private readonly config: JobConfig,
    private readonly host: JobHost,
  ) {
    this.facts = new Map(
      config.jobs.map(({ name, commands, threads, targetName, timeoutMs }) => [
        name,
        { commandLines: commands.map(joinCommandLine), threads, targetName, timeoutMs },
      ]),
    );
  }

  async start(): Promise<void> {
    const isDeclared = this.config.jobs.some(({ commands }) => commands.length > 0);
    if (isDeclared || (await (await this.store()).hasWork())) await this.parts.get();
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    await (await this.parts.ifNeeded())?.runner.shutdown(deadline);
  }

  /** The configuration of an account's job; `undefined` if it is not declared for that account. */
  readonly factsOf = ({ name, accountId }: Pick<CatalogJob, 'name' | 'accountId'>): JobFacts | undefined =>
    // The configuration belongs to the first account; a job of another account may have the same name.
    accountId === FIRST_ACCOUNT_ID ? this.facts.get(name) : undefined;

  /** Returns the captured output of a step's command. @throws StoreError */
  async outputOf(stepId: string): Promise<StepOutput | undefined> {
    const live = (await this.parts.ifNeeded())?.runner.outputOf(stepId);
    return live ?? (await (await this.store()).outputsOf([stepId])).get(stepId);
  }

  /** Returns whether a run under way can be cancelled. @throws StoreError */
  readonly cancelStateOf = async (runId: number): Promise<CancelState> => {
    const { cancelStateOf } = await import('./service.js');
    return cancelStateOf(runId, { queue: await this.store(), executions: this.host.state.executions });
  };

  readonly api: NonNullable<Feature['api']> = async () => {
    const { jobRunRouter } = await import('./routes.js');
    const { state, clock } = this.host;
    const { factsOf } = this;
    const openService = async () => (await this.parts.get()).service;
    const { redaction, 'public-url': url } = this.config;
    const publicUrl = url === 'off' ? null : url;
    const shape = await runShape();
    return [jobRunRouter({ catalog: state.catalog, factsOf, shape, redaction, publicUrl, clock, openService })];
  };

  readonly pages: NonNullable<Feature['pages']> = async () => {
    const { jobPages } = await import('./pages.js');
    const { state, measures, live, clock, version } = this.host;
    const { redaction } = this.config;
    const openService = async () => (await this.parts.get()).service;
    return jobPages({
      catalog: state.catalog,
      factsOf: this.factsOf,
      openService,
      jobs: this,
      measures,
      live,
      redaction,
      clock,
      version,
    });
  };

  readonly apiPaths: NonNullable<Feature['apiPaths']> = async () => {
    const [{ jobRunPaths }, { runSchema }] = await Promise.all([import('./routes.js'), runShape()]);
    return jobRunPaths(runSchema);
  };

  /** @throws StoreError */
  private async load(): Promise<JobParts> {
    const { randomUUID } = await import('node:crypto');
    const { JobLauncher } = await import('./launcher.js');
    const { JobRunner: Runner } = await import('./runner.js');
    const { JobService: Service } = await import('./service.js');
    const { state, registry, nodePath, entryPath, environment, credentials, clock, logger } = this.host;
    const { executions, catalog } = state;
    const queue = await this.store();
    const jobs = new Map(this.config.jobs.map((job) => [job.name, job]));
    const dataFolder = this.config['data-dir'];
    const launcher = new JobLauncher({ nodePath, entryPath, environment, credentials, dataFolder }, clock);
    const newId = () => randomUUID();
    const runner = new Runner(
      { maxRunning: this.config['max-running-jobs'], isShared: this.config.processes === 'several' },
      { jobs, queue, executions, registry, launcher, clock, logger, newId },
    );
    const service = new Service({ jobs, queue, catalog, executions, runner, clock, newId });
    await runner.start();
    return { runner, service };
  }

  private async store() {
    const { JobRunStore } = await import('./job-run-store.js');
    const { db, observer, fence } = this.host.state;
    return new JobRunStore(db, observer, fence);
  }
}
