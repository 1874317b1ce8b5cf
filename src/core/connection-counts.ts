/** Connections of a port. */
export interface ConnectionCounts {
  readonly openCount: number;
  /** Since the start, those that were closed at once because there were too many. */
  readonly droppedCount: number;
}
