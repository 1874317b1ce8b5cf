/** A run of a hosted platform, named so that it can be asked for. Ids are texts of digits. */
export interface HostedRunKey {
  /** The platform's base URL, without a slash at its end. */
  readonly platform: string;
  readonly accountId: string;
  readonly runId: string;
}

/** The runs that a watch covers. */
export interface WatchScope {
  readonly platform: string;
  readonly accountId: string;
  /** `null` for all jobs of the account. */
  readonly jobId: string | null;
}

/** The state of a hosted run in the queue. */
export interface HostedRunRow extends HostedRunKey {
  /** `failed`: it was given up; it waits again when it is added again. */
  readonly state: 'waiting' | 'done' | 'failed';
  /** When it was first added. */
  readonly notedUnixMs: number;
  /** While it waits: when it is to be asked for. */
  readonly dueUnixMs: number;
  /** Failed attempts in a row. */
  readonly attemptCount: number;
  /** Indices of the steps that need not be asked for again. */
  readonly doneSteps: readonly number[];
}

/** Hosted runs to pull: the queue of webhooks and watches, and the memory of finished ones. */
export interface PullStore {
  /**
   * Adds runs, which then wait; of known ones only those that failed wait again. Durable when it resolves.
   * @returns false, without adding any, if more than `maxWaiting` runs would wait.
   */
  add(keys: readonly HostedRunKey[], nowUnixMs: number, maxWaiting: number): Promise<boolean>;
  find(key: HostedRunKey): Promise<HostedRunRow | undefined>;
  /** The run of a platform that waits and is due first. */
  findNext(platform: string): Promise<HostedRunRow | undefined>;
  /** Writes rows, new or not. */
  save(rows: readonly HostedRunRow[]): Promise<void>;
  /** Runs of a platform that wait. */
  countWaiting(platform: string): Promise<number>;
  /** The creation time up to which a watch has added all runs. */
  findCursor(scope: WatchScope): Promise<number | undefined>;
  saveCursor(scope: WatchScope, createdUnixMs: number): Promise<void>;
  /** Deletes runs that are done or failed and were added before a time. */
  prune(beforeUnixMs: number): Promise<void>;
}
