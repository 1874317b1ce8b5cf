/** A run of a hosted platform, named so that it can be asked for. Ids are texts of digits. */
export interface HostedRunKey {
  /** The platform's base URL, without a slash at its end. */
  readonly platform: string;
  readonly accountId: string;
  readonly runId: string;
}

/** Which runs a watch looks at. */
export interface WatchScope {
  readonly platform: string;
  readonly accountId: string;
  /** `null` for all jobs of the account. */
  readonly jobId: string | null;
}

/** What is known of a hosted run that is to be brought in, or was. */
export interface HostedRunRow extends HostedRunKey {
  /** `failed`: it was given up; it waits again when it is noted again. */
  readonly state: 'waiting' | 'done' | 'failed';
  /** When it was first noted. */
  readonly notedUnixMs: number;
  /** While it waits: when it is to be asked for. */
  readonly dueUnixMs: number;
  /** Failed attempts in a row. */
  readonly attemptCount: number;
  /** Indices of the steps that need not be asked for again. */
  readonly doneSteps: readonly number[];
}

/** Hosted runs to be brought in: the queue of webhooks and watches, and the memory of what was done. */
export interface PullStore {
  /**
   * Notes runs, which then wait; of those that are noted already only failed ones wait anew. Durable when it resolves.
   * @returns false, and none was noted, where more than `maxWaiting` runs would wait.
   */
  add(keys: readonly HostedRunKey[], nowUnixMs: number, maxWaiting: number): Promise<boolean>;
  find(key: HostedRunKey): Promise<HostedRunRow | undefined>;
  /** The run of a platform that waits and is due first. */
  findNext(platform: string): Promise<HostedRunRow | undefined>;
  /** Writes rows, known or not. */
  save(rows: readonly HostedRunRow[]): Promise<void>;
  /** Runs of a platform that wait. */
  countWaiting(platform: string): Promise<number>;
  /** Up to when a watch has noted all runs, by the time of their creation. */
  findCursor(scope: WatchScope): Promise<number | undefined>;
  saveCursor(scope: WatchScope, createdUnixMs: number): Promise<void>;
  /** Forgets runs that are done or failed and were noted before a time. */
  prune(beforeUnixMs: number): Promise<void>;
}
