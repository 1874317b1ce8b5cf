import type { RunStatus } from '../run-status.js';

/** What an event tells of a run, as it was when the event came to be. Times are Unix milliseconds. */
export interface RunFacts {
  readonly jobId: number;
  readonly jobName: string;
  readonly runId: number;
  readonly environmentId: number;
  readonly environmentName: string;
  readonly projectId: number;
  readonly projectName: string;
  /** Empty where the telemetry has not told. */
  readonly engineVersion: string;
  readonly status: RunStatus;
  /** Why it did not end well. */
  readonly statusMessage: string | null;
  /** What started it, in words; `null` where nobody said. */
  readonly reason: string | null;
  /** When its first command was started; of a run that never was, when it came to be. */
  readonly startedUnixMs: number;
  /** Of an event that says that it is over. */
  readonly finishedUnixMs: number | null;
  /** Artifacts that it was to have and that never came; left out where all of them can be downloaded. */
  readonly missingArtifacts?: MissingArtifactFacts;
  /** Of an event that says that it errored: when its first command that did so ended. */
  readonly erroredUnixMs: number | null;
}

/** What an event says of missing artifacts. */
export interface MissingArtifactFacts {
  readonly count: number;
  /** The first of them. */
  readonly paths: readonly string[];
  /** Why, in words. */
  readonly reason: string;
}
