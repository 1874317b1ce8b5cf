import type { ForeignBatch, Signal } from '../record/record-batch.js';

/** A place in the foreign telemetry: a segment file's name and a byte offset in it. */
export interface ForeignPlace {
  readonly segment: string;
  readonly offset: number;
}

/** One OTLP JSON message of another service, and the place after it. */
export interface ForeignEntry {
  readonly signal: Signal;
  readonly body: string;
  readonly next: ForeignPlace;
}

/** Reads the telemetry of other services, kept as OTLP JSON lines in segment files. */
export interface ForeignLogReader {
  /** Yields what was written after `from` (all that is still kept when left out), in order, up to the present end. */
  read(from?: ForeignPlace): AsyncIterable<ForeignEntry>;
  /** The place after the last durable entry; `undefined` when nothing was ever written. */
  end(): Promise<ForeignPlace | undefined>;
}

/** Is told that foreign telemetry became durable. Called synchronously; must not throw and must not wait. */
export interface ForeignListener {
  onForeign(batches: readonly ForeignBatch[]): void;
}
