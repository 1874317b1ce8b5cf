/** Why nothing more is accepted at the moment. */
export interface Shortage {
  /** One sentence for the operator: the shortage, and the setting that changes the limit. */
  readonly message: string;
  /** When to come back, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Is asked before work is taken on, so that what was taken on can be finished. */
export interface Guard {
  /**
   * Whether there is room for a body; answers immediately from known values.
   * @param bodyBytes announced length of the body; 0 if unknown.
   * @returns `undefined` if it may be read.
   */
  findShortage(bodyBytes: number): Shortage | undefined;
  /** Counts a body that was read, in bytes after inflating. */
  onBody(bodyBytes: number): void;
}
