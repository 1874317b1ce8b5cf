import type { TraceId } from '../record/ids.js';
import type { RunStatus } from './run-status.js';

/** Something with a number and a name that runs belong to. */
export interface NamedThing {
  readonly id: number;
  readonly name: string;
}

/** A run as lists show it. Times are Unix milliseconds. */
export interface CatalogRun {
  readonly id: number;
  readonly accountId: number;
  readonly project: NamedThing;
  readonly environment: NamedThing;
  readonly job: NamedThing;
  /** The user's name for it (`--run-id`). */
  readonly runKey: string | null;
  /** Why it was started, for people to read. */
  readonly reason: string | null;
  readonly status: RunStatus;
  /** Why it failed; `null` if there is nothing to report. */
  readonly statusMessage: string | null;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
  /** When its first command was started; `null` while it is queued. */
  readonly dequeuedUnixMs: number | null;
  /** When its first engine command began, by its telemetry; `null` before. */
  readonly startedUnixMs: number | null;
  /** `null` until its status is final. */
  readonly finishedUnixMs: number | null;
  /** `null` if its telemetry does not contain it. */
  readonly engineVersion: string | null;
  readonly gitBranch: string | null;
  readonly gitSha: string | null;
  readonly stepCount: number;
  /** Artifacts that were to come and never did, of all its steps. */
  readonly missingArtifactCount: number;
}

/** Artifacts that a step is to have and that cannot all be downloaded. */
export interface CatalogArtifacts {
  /** `uploading`: uploads are in progress; `incomplete`: some never arrived. */
  readonly state: 'uploading' | 'incomplete';
  /** All expected artifacts of the step. */
  readonly expectedCount: number;
  /** The missing ones. */
  readonly missing: readonly string[];
  /** Why, in words; `null` while they are uploaded. */
  readonly reason: string | null;
}

/** A step of a run: one command. */
export interface CatalogStep {
  readonly id: number;
  /** The name under which it was registered. */
  readonly stepId: string;
  readonly runId: number;
  readonly accountId: number;
  /** Position in the run, from 1. */
  readonly index: number;
  readonly status: RunStatus;
  readonly statusMessage: string | null;
  /** The command and its arguments as started, or according to the telemetry. */
  readonly command: readonly string[];
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
  /** When its first engine command began; `null` before. */
  readonly startedUnixMs: number | null;
  /** `null` while it is running. */
  readonly finishedUnixMs: number | null;
  /** `null` if all its artifacts can be downloaded. */
  readonly artifacts: CatalogArtifacts | null;
  /** Its engine commands, in the order in which they began; most steps have one. */
  readonly invocations: readonly CatalogInvocation[];
}

/** One engine command of a step. */
export interface CatalogInvocation {
  readonly traceId: TraceId;
  /** Position in its trace, from 1. */
  readonly index: number;
  /** The command line; `null` if the telemetry does not contain it. */
  readonly command: string | null;
  readonly verdict: 'success' | 'error' | 'canceled' | 'lost' | null;
  /** File name in the trace's folder. */
  readonly parquetFile: string;
  /** Whether that file is there and has all of it. */
  readonly isSaved: boolean;
}

/** A job. */
export interface CatalogJob extends NamedThing {
  readonly accountId: number;
  readonly projectId: number;
  readonly environmentId: number;
  readonly createdUnixMs: number;
  readonly updatedUnixMs: number;
}

/** From and to, both included, in Unix milliseconds. */
export type TimeRange = readonly [fromUnixMs: number, toUnixMs: number];

/** Which runs, in which order. What is left out filters nothing. */
export interface RunQuery {
  readonly statuses?: readonly number[];
  readonly jobId?: number;
  readonly environmentId?: number;
  readonly projectIds?: readonly number[];
  readonly idAbove?: number;
  readonly createdRange?: TimeRange;
  readonly finishedRange?: TimeRange;
  /** Part of the name of its job, environment or project or of the user's name for it, ignoring case; or its id. */
  readonly textContains?: string;
  /** Runs that are not over stand after all others by `finished`. */
  readonly orderBy: 'id' | 'created' | 'finished';
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** Which jobs, in which order. */
export interface JobQuery {
  readonly projectIds?: readonly number[];
  readonly environmentId?: number;
  /** Part of the name, ignoring case. */
  readonly nameContains?: string;
  readonly orderBy: 'id' | 'name' | 'created' | 'updated';
  readonly isDescending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** A part of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** On all pages. */
  readonly totalCount: number;
}

/** Runs and their steps, as an account sees them: another's are as if they were not there. */
export interface RunCatalog {
  findRun(accountId: number, runId: number): Promise<CatalogRun | undefined>;
  listRuns(accountId: number, query: RunQuery): Promise<Page<CatalogRun>>;
  /** Steps of these runs, by run and position. */
  stepsOf(accountId: number, runIds: readonly number[]): Promise<readonly CatalogStep[]>;
  findStep(accountId: number, id: number): Promise<CatalogStep | undefined>;
}

/** Jobs, as an account sees them. */
export interface JobCatalog {
  findJob(accountId: number, id: number): Promise<CatalogJob | undefined>;
  listJobs(accountId: number, query: JobQuery): Promise<Page<CatalogJob>>;
  /** Those of the jobs that there are. */
  findJobs(accountId: number, ids: readonly number[]): Promise<readonly CatalogJob[]>;
}
