import type { SendResult } from '../delivery/transport.js';
import type { Signal } from '../record/record-batch.js';
import type { ItemBatch } from './item-batch.js';

/** What became of the first items of a batch. */
export interface BatchOutcome {
  readonly result: SendResult;
  /** How many items, from the front, `result` speaks of; at least one. The others were not tried. */
  readonly itemCount: number;
}

/** A place that gets exports. The worker around it keeps the order, the cursor and the retries; a destination only sends. */
export interface Destination {
  /** Unique among the destinations; its cursors are kept under this name. */
  readonly name: string;
  /** What it is to get. */
  readonly signals: readonly Signal[];
  /** Calls of `send` for a signal at the same time, at most; as many as the worker likes where it is left out. */
  readonly maxInFlight?: number;
  /**
   * Sends as many items from the front of a batch as go into one request. One attempt; never throws for what the other
   * side does, and settles soon after `abort`.
   */
  send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome>;
  /** Sends one OTLP JSON message of another service unchanged; left out where a destination cannot. */
  forward?(signal: Signal, body: string, abort: AbortSignal): Promise<SendResult>;
  /** Lets go of connections; called once, after the last send. */
  close(): Promise<void>;
}
