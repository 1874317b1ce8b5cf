/** Why nothing more can be taken just now. */
export interface Shortage {
  /** One sentence for whoever runs the bridge: what is short and which setting changes it. */
  readonly message: string;
  /** When to come back, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Is asked before work is taken on, so that what was taken on can be finished. */
export interface Guard {
  /**
   * Whether a body finds room; answers at once, from what is known.
   * @param bodyBytes of the body as it is announced; 0 where that is unknown.
   * @returns `undefined` when it may be read.
   */
  findShortage(bodyBytes: number): Shortage | undefined;
  /** Counts a body that was read, in bytes after inflating. */
  onBody(bodyBytes: number): void;
}
