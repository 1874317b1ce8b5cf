/** A node that did not do well, and why. */
export interface NodeTrouble {
  /** Such as `model.shop.orders`. */
  readonly uniqueId: string;
  /** Redacted; empty where nothing is known. */
  readonly reason: string;
}

/** What a message tells of a run beside its event. */
export interface RunStory {
  /** The first of those that failed with an error. */
  readonly errors: readonly NodeTrouble[];
  /** The first errors that name no node, of parsing and compiling among them, redacted. */
  readonly otherErrors: readonly string[];
  /** The first of the tests that failed, with counts of rows. */
  readonly failedTests: readonly NodeTrouble[];
  /** The first of the sources that are older than their limit for an error, with their age. */
  readonly staleSources: readonly NodeTrouble[];
  /** The first of the nodes that came to an outcome which this version does not know, with the engine's word for it. */
  readonly otherOutcomes: readonly NodeTrouble[];
  /** How many of all these are left out. */
  readonly omittedCount: number;
  /** Why the run did not end well, redacted. */
  readonly statusMessage: string | null;
  /** Where the run is to be seen; `null` where that is not known. */
  readonly url: string | null;
}

/** Tells of runs what may leave the machine: texts are redacted as exports are, and know the words of the run's records. */
export interface StoryTeller {
  /** @param statusMessage why the run did not end well, as the event says */
  tell(accountId: number, runId: number, statusMessage: string | null): Promise<RunStory>;
  /** Why a run did not end well, alone. */
  statusMessage(accountId: number, runId: number, message: string): Promise<string>;
}
