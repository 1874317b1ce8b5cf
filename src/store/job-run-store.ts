import type { RunStatus } from './run-status.js';

/** Whether a run waits for its turn, is under way, or neither any more. */
export type JobRunState = 'queued' | 'running' | 'ended';

/** A run that was started over the API: what is to be done, beside its row as a run. */
export interface JobRunRow {
  readonly runId: number;
  readonly accountId: number;
  /** The run's name in the book; made up by whoever asked for the run. */
  readonly runKey: string;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly state: JobRunState;
  /** The first of the job's commands that it is to run, from 0. */
  readonly firstCommand: number;
  /** Of the commands as they were configured when it was asked for; what is run is what is configured when it is its turn. */
  readonly commandsDigest: string;
  /** The command that did not end well, from 0; `null` where all did, or none was reached. */
  readonly stoppedAt: number | null;
  /** Whether it was cancelled. */
  readonly isCancelled: boolean;
  /** Process id of the command under way, as it was last noted. */
  readonly pid: number | null;
}

/** A run to add. */
export interface JobRunRequest {
  readonly accountId: number;
  readonly runKey: string;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  readonly firstCommand: number;
  readonly commandsDigest: string;
  readonly requestedUnixMs: number;
}

/** How many runs may wait. */
export interface QueueLimits {
  /** Of one job. */
  readonly perJob: number;
  readonly total: number;
}

/** What became of the wish for a run. */
export type AddedJobRun =
  | { readonly kind: 'added'; readonly runId: number }
  /** So many wait already: of this job (`perJob`) or of all. */
  | { readonly kind: 'full'; readonly limit: keyof QueueLimits; readonly waitingCount: number };

/** The last of a job's runs. */
export interface LatestRun {
  readonly runId: number;
  readonly status: RunStatus;
}

/** What a command wrote. */
export interface StepOutput {
  /** Its end, with secrets taken out. */
  readonly text: string;
  /** Bytes of what came before that. */
  readonly droppedBytes: number;
}

/** The queue of runs that were started over the API. */
export interface JobRunStore {
  /** Adds a run and puts it at the end of the queue. */
  add(request: JobRunRequest, limits: QueueLimits): Promise<AddedJobRun>;
  /** Whether any run waits or is under way. */
  hasWork(): Promise<boolean>;
  /** Takes the run that has waited longest of those whose job has none under way, and says that it is under way. */
  claim(): Promise<JobRunRow | undefined>;
  find(runId: number): Promise<JobRunRow | undefined>;
  /** A job's last run, whoever started it. */
  latestOf(accountId: number, job: string): Promise<LatestRun | undefined>;
  /** Runs that are under way as far as noted, oldest first; where several processes share the database, those of dead ones. */
  listRunning(): Promise<readonly JobRunRow[]>;
  notePid(runId: number, pid: number): Promise<void>;
  /**
   * The run is over for the queue. Where it is not over in the book, it is finished there.
   * @param failure why it failed, where its steps do not say it
   */
  end(runId: number, end: { stoppedAt: number | null; failure: string | null; nowUnixMs: number }): Promise<void>;
  /** Notes what a step wrote. */
  saveOutput(stepId: string, output: StepOutput): Promise<void>;
  /** What steps wrote, by their ids; those of which nothing is kept are left out. */
  outputsOf(stepIds: readonly string[]): Promise<ReadonlyMap<string, StepOutput>>;
}
