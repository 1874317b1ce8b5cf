import type { TraceId } from '../../record/telemetry-record.js';

/** The records of one trace in one delivery: a range of bytes of an object in the bucket. */
export interface NewPart {
  readonly traceId: TraceId;
  readonly fromByte: number;
  /** Exclusive. */
  readonly toByte: number;
}

/** A part with its number; parts of a trace are counted from 1 without gaps, in the order in which they were accepted. */
export interface JournalPart extends NewPart {
  readonly part: number;
  /** `null` for a part that only ends the wait of log records for their spans' names: of those that arrived up to the part `toByte`. */
  readonly objectKey: string | null;
}

/** What was accepted and is not yet in a trace's stored log. */
export interface JournalStore {
  /**
   * Numbers parts of an object in the bucket, in their order; they are accepted when this resolves. A trace without an
   * owner becomes the process's.
   * @throws StoreError `locked` if the process counts as dead: its objects in the bucket may be removed
   */
  add(processId: string, objectKey: string, parts: readonly NewPart[]): Promise<void>;
  /** Adds the part that ends the wait of log records up to a part. @returns false if the process does not own the trace */
  addRelease(processId: string, traceId: TraceId, upToPart: number): Promise<boolean>;
  /** A trace's parts after a number, in their order. */
  list(traceId: TraceId, afterPart: number, limit: number): Promise<readonly JournalPart[]>;
  /** Objects all of whose parts have been removed. */
  listUnneeded(limit: number): Promise<readonly string[]>;
  /** The objects that are still referenced. */
  known(objectKeys: readonly string[]): Promise<ReadonlySet<string>>;
  /** The objects are no more. */
  forget(objectKeys: readonly string[]): Promise<void>;
}
