import { MASK } from '../config/mask.js';
import type { Clock, RetryPolicy } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { ExportTurns } from '../core/turns.js';
import type { PassthroughLogReader } from '../log/passthrough-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunSummary } from '../run/verdict.js';
import type { CursorStore } from '../storage/cursor-store.js';
import type { TraceCatalog } from '../storage/trace-catalog.js';
import type { LineSource } from './record-log-lines.js';
import type { RunManifests } from './run-manifests.js';
import type { RunMapper } from './run-mapper.js';
import type { ItemBatch } from './wire/export-request.js';

/** What one destination did with one signal since the start. */
export interface SignalStatus {
  /** `waiting` between attempts, `off` where it is not asked for or the receiver does not take it. */
  readonly state: 'ready' | 'waiting' | 'off';
  readonly sentCount: number;
  /** Items refused for good (4xx), or rejected in a partial success. */
  readonly refusedCount: number;
  readonly rejectedCount: number;
  /** Messages of other services that were forwarded. */
  readonly forwardedCount: number;
  /** Attempts that failed and are tried again. */
  readonly failedAttemptCount: number;
}

/** What one destination has not got. */
export interface BacklogStatus {
  /** Bytes of record logs that were not sent. */
  readonly lagBytes: number;
  /** Age of the oldest record that was not sent, in seconds; 0 when there is none. Of what was there at the start it may be too high. */
  readonly oldestUnsentSeconds: number;
  /** What waited too long and is not sent any more, since the start: times that a run's oldest part was given up, spans and log records in them. */
  readonly givenUpRunCount: number;
  readonly givenUpSpanCount: number;
  readonly givenUpLogCount: number;
}

/** How far one destination has got, for `/readyz?verbose`. */
export interface DestinationStatus extends BacklogStatus {
  readonly name: string;
  /** `idle` has nothing to send, `waiting` failed and will try again. */
  readonly state: 'idle' | 'sending' | 'waiting' | 'stopped';
  /** Runs that are open or not sent to their end. */
  readonly pendingRuns: number;
  readonly signals: Readonly<Record<Signal, SignalStatus>>;
  /** The last failure in words; `null` after a success. */
  readonly lastError: string | null;
}

/** What became of the first items of a batch. */
export interface BatchOutcome {
  readonly result: SendResult;
  /** How many items, from the front, `result` speaks of; at least one. The others were not tried. */
  readonly itemCount: number;
}

/** Receives exports. The worker around it keeps the order, the cursor and the retries; a destination only sends. */
export interface Destination {
  /** Unique among the destinations; its cursors are kept under this name. */
  readonly name: string;
  /** What it is to get. */
  readonly signals: readonly Signal[];
  /** Calls of `send` for a signal at the same time, at most; as many as the worker likes where it is left out. */
  readonly maxInFlight?: number;
  /** Whether the items of a batch have to be of one run; left out: no. */
  readonly isOneRunAtATime?: boolean;
  /**
   * Sends as many items from the front of a batch as go into one request. One attempt; never throws for what the other
   * side does, and settles soon after `abort`.
   */
  send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome>;
  /**
   * Sends one OTLP JSON message of another service unchanged; in parts, where the receiver does not take it whole for its size
   * or a record in it. Left out where a destination cannot.
   * @param isHalved also in parts where it failed so often that a record in it may be at fault
   */
  forward?(signal: Signal, body: string, abort: AbortSignal, isHalved?: boolean): Promise<SendResult>;
  /** Sends a request of a signal without a record, by which one sees how the receiver is. Left out where that cannot be. */
  ask?(signal: Signal, abort: AbortSignal): Promise<SendResult>;
  /** Lets go of connections; called once, after the last send. */
  close(): Promise<void>;
}

/** What became of one attempt to send. */
export type SendResult =
  /** 2xx; `status` is `null` where an exporter does not report it. `rejectedCount` and `message` come from OTLP's partial success. */
  | {
      readonly kind: 'accepted';
      readonly status: number | null;
      readonly rejectedCount: number;
      readonly message: string;
    }
  /** 408, 429, 5xx, a network or TLS error, no answer in time. `retryAfterMs` when the receiver sent it. */
  | {
      readonly kind: 'retryable';
      readonly status: number | null;
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** Any other answer: sending the same again would not help. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

/** All of it was taken, by a receiver that answers with no status. */
export const ACCEPTED: SendResult = { kind: 'accepted', status: null, rejectedCount: 0, message: '' };
/** A signal that is not for the destination; status 0 is the program's own. */
export const NOT_ASKED: SendResult = refused(0, 'the destination does not get this signal');
/** Log records, for an exporter of spans. */
export const TAKES_NO_LOGS: SendResult = refused(0, 'a span exporter takes no log records');
export const BROKEN_OFF: SendResult = retryable('the export was broken off');

/** Makes the result of an attempt that is to be repeated. @param retryAfterMs as the receiver asks for; `null` where it does not */
export function retryable(
  message: string,
  status: number | null = null,
  retryAfterMs: number | null = null,
): Extract<SendResult, { readonly kind: 'retryable' }> {
  return { kind: 'retryable', status, retryAfterMs, message };
}

/** Makes the result of an attempt that would fail again. */
export function refused(status: number, message: string): Extract<SendResult, { readonly kind: 'refused' }> {
  return { kind: 'refused', status, message };
}

/** Shorter texts are words rather than secrets. */
const MIN_SECRET_LENGTH = 6;

/** Masks secrets in what a receiver says, which may repeat a credential that it refuses. @param values of headers, and what else is secret */
export function secretMask(values: readonly string[]): (message: string) => string {
  // Of `Bearer abc` also the credential alone; the longest first, so that none is cut by one that it contains.
  const secrets = [...new Set(values.flatMap((value) => [value, value.slice(value.lastIndexOf(' ') + 1)]))]
    .filter(({ length }) => length >= MIN_SECRET_LENGTH)
    .sort((a, b) => b.length - a.length);
  return (message) => secrets.reduce((text, secret) => text.replaceAll(secret, MASK), message);
}

/** Returns the secrets in an endpoint: values of its headers, and of its address its password and what follows the `?`. */
export function secretsOf({
  url,
  headers,
}: {
  readonly url: string | URL;
  readonly headers: Readonly<Record<string, string>>;
}): string[] {
  const { password, search, searchParams } = new URL(url);
  return [...Object.values(headers), password, search, ...searchParams.values()];
}

/** Limits and times of one destination's worker. */
export interface ExportWorkerOptions {
  /** Items in one request at most: of usual spans less than a megabyte. Default 1,024. */
  readonly maxBatchItems: number;
  /** How long a span waits for events that come after it, once its run is quiet. Default 2,000 ms. */
  readonly eventHoldMs: number;
  /** How long appended records wait for more of them to share a request. Default 500 ms. */
  readonly batchDelayMs: number;
  /** Requests of a signal at the same time; a destination may allow fewer. Default 4. */
  readonly maxInFlight: number;
  /** Mapped items of a signal that wait for a request; beyond it nothing more is read. Default 4,096. */
  readonly maxWaitingItems: number;
  /** Runs with a mapper at once. Others wait, closed; one that was closed reads its log again from the start. Default 1,024. */
  readonly maxOpenRuns: number;
  /** Memory that the mappers of all open runs may take together, as estimated. Default 64 MiB. */
  readonly maxOpenBytes: number;
  /** How long an open run may keep its mapper while others wait for one. Default 30,000 ms. */
  readonly openSliceMs: number;
  /** What waits longer than this is given up. Default 7 days; `null`: nothing is. */
  readonly maxBacklogAgeMs: number | null;
}

/** The defaults. */
export const DEFAULT_EXPORT_WORKER_OPTIONS: ExportWorkerOptions = {
  maxBatchItems: 1_024,
  eventHoldMs: 2_000,
  batchDelayMs: 500,
  maxInFlight: 4,
  maxWaitingItems: 4_096,
  maxOpenRuns: 1_024,
  maxOpenBytes: 64 * 1024 * 1024,
  openSliceMs: 30_000,
  maxBacklogAgeMs: 7 * 86_400_000,
};

/** The parts of the program that all workers share. */
export interface ExportDeps {
  readonly cursors: CursorStore;
  /** How long logs are, and the records of those that are given up, to be counted. */
  readonly reader: RecordLogReader;
  /** The same logs as lines: what is exported. */
  readonly lines: LineSource;
  /** Finds a run's summary, for runs that were finished before the worker started. */
  readonly runs: { find(traceId: TraceId): Promise<RunSummary | undefined> };
  /** Finds the runs that a trace's commands belong to; left out if unknown. */
  readonly origins?: Pick<TraceCatalog, 'originsOf'>;
  /** Finds what the nodes of runs depend on; left out if unknown. */
  readonly manifests?: Pick<RunManifests, 'of'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly turns: ExportTurns;
}

/** The parts of one destination's worker. */
export interface ExportWorkerDeps extends ExportDeps {
  readonly destination: Destination;
  /** The telemetry of other services; left out where it is not forwarded. */
  readonly passthrough?: PassthroughLogReader;
  /** Makes an empty mapper with the destination's options. */
  readonly createMapper: () => RunMapper | Promise<RunMapper>;
  /** The same without waiting for anything: `undefined` until that can be. Left out: no run is taken live from its first record on. */
  readonly createMapperNow?: () => RunMapper | undefined;
  /** When a destination that takes nothing is tried again. */
  readonly retryPolicy: RetryPolicy;
  /** When a single request that failed is tried again while others succeed. */
  readonly requestRetryPolicy: RetryPolicy;
  /** Receives an error that nothing handled, once: the worker does nothing more. */
  readonly onFailed: (error: unknown) => void;
}
