/** How long and how much of a kind is kept. */
export interface RetentionLimits {
  /** What ended longer ago goes; `null` for no such limit. In milliseconds. */
  readonly maxAgeMs: number | null;
  /** While there is more, the oldest goes; `null` for no such limit. */
  readonly maxBytes: number | null;
}

/** What something takes. */
export interface RetainedSize {
  readonly fileCount: number;
  readonly sizeBytes: number;
}

/** Something that may be removed as one. */
export interface Removable {
  /** How many of the kind's things. */
  readonly count: number;
  readonly endedUnixMs: number;
  /** What is removed with it. */
  measure(): Promise<RetainedSize>;
  /** Removes it. False where it has turned out not to be over, and nothing was done. */
  remove(): Promise<boolean>;
}

/** One kind of thing that is kept for a while, by limits of its own. Whoever adds a kind adds one of these. */
export interface RetainedKind {
  /** As settings and log lines name it, for example `telemetry`. */
  readonly name: string;
  /** What is counted, of artifacts the runs that they are of. */
  readonly noun: 'runs' | 'deliveries' | 'files';
  readonly limits: RetentionLimits;
  /** What all of it takes, in bytes; asked for where there is a limit. */
  totalBytes(signal: AbortSignal): Promise<number>;
  /** What may go of what ended up to then, about the oldest first: nothing that is under way or that somebody waits for. */
  removables(endedUntilUnixMs: number): AsyncIterable<Removable>;
}
