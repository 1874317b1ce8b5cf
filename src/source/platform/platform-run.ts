/**
 * A run as the hosted platform tells it. Ids are texts of digits: they may be larger than a number holds. What the
 * platform leaves out is `null`.
 */
export interface PlatformRun {
  readonly runId: string;
  readonly jobId: string | null;
  readonly jobName: string | null;
  readonly environmentId: string | null;
  readonly environmentName: string | null;
  readonly projectId: string | null;
  /** For example `Success`, `Error` or `Running`. */
  readonly status: string;
  readonly statusMessage: string | null;
  readonly isComplete: boolean;
  /** Whether the platform has saved the run's files; `null` where it does not say. */
  readonly hasArtifacts: boolean | null;
  readonly gitSha: string | null;
  readonly gitBranch: string | null;
  /** The run's page. */
  readonly href: string | null;
  /** What started it, for people. */
  readonly cause: string | null;
  readonly createdUnixMs: number | null;
  readonly startedUnixMs: number | null;
  readonly finishedUnixMs: number | null;
  /** In the order of their index; empty where they were not asked for. */
  readonly steps: readonly PlatformStep[];
}

/** A step of a run: a command of the engine, or something that the platform does itself. */
export interface PlatformStep {
  /** From 1. */
  readonly index: number;
  readonly stepId: string | null;
  /** For example ``Invoke dbt with `dbt build` ``. */
  readonly name: string;
  /** The command in the name; `null` where the platform does the step itself. */
  readonly command: string | null;
  readonly outcome: StepOutcome;
  readonly startedUnixMs: number | null;
  readonly finishedUnixMs: number | null;
}

/** How a step ended; `unfinished` where it was not begun or goes on. */
export type StepOutcome = 'success' | 'error' | 'canceled' | 'unfinished';
