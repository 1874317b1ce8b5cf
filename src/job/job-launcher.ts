import { devNull } from 'node:os';
import type { Clock } from '../component/clock.js';
import type { JobRunRow } from '../store/job-run-store.js';
import type { JobDefinition } from './job-definition.js';
import { StepProcess } from './step-process.js';

/** What it takes to run a command under `exec`. */
export interface JobLauncherConfig {
  /** Path of the program that runs JavaScript, and of this program's entry. */
  readonly nodePath: string;
  readonly entryPath: string;
  readonly dataFolder: string;
  /** Environment of this program. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What `exec` needs in its environment to be let in; asked for with each command. */
  readonly credentials: () => Readonly<Record<string, string>>;
}

/** One command of a run. */
export interface StepLaunch {
  readonly run: JobRunRow;
  readonly job: JobDefinition;
  readonly stepId: string;
  readonly command: readonly string[];
}

/** Starts commands of jobs as steps of their runs: each under an `exec` of this program, which keeps its telemetry. */
export class JobLauncher {
  constructor(
    private readonly config: JobLauncherConfig,
    private readonly clock: Clock,
  ) {}

  /** The environment that a job's commands get, but for what `exec` adds. */
  environmentOf(job: JobDefinition): Readonly<Record<string, string | undefined>> {
    const { environment, credentials } = this.config;
    return { ...commandEnvironment(environment), ...job.variables, ...credentials() };
  }

  launch({ run, job, stepId, command }: StepLaunch): StepProcess {
    const { nodePath, entryPath, dataFolder } = this.config;
    // What a request said, its reason for example, stays away from command lines.
    const place = { job: run.job, environment: run.environment, project: run.project };
    const flags = Object.entries(place).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]));
    // The bridge that holds the folder is this one: what cannot be handed over is taken in by its next start.
    const where = [`--config=${devNull}`, `--data-dir=${dataFolder}`];
    return new StepProcess(
      {
        program: nodePath,
        args: [
          entryPath,
          'exec',
          ...where,
          `--run-id=${run.runKey}`,
          `--step-id=${stepId}`,
          ...flags,
          '--',
          ...command,
        ],
        workingDir: job.workingDir,
        environment: this.environmentOf(job),
      },
      this.clock,
    );
  }
}

/** What is said to this program is not said to its commands: where it exports to, its own secrets, and its caller's trace. */
function commandEnvironment(own: Readonly<Record<string, string | undefined>>) {
  return Object.fromEntries(Object.entries(own).filter(([name]) => !OWN.test(name)));
}

const OWN = /^(?:RUN_BRIDGE_.*|OTEL_.*|DATABASE_URL|TRACEPARENT|TRACESTATE|BAGGAGE)$/;
