import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import type { Guard } from '../core/guard.js';
import type { HealthState } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { Appended } from '../log/appended.js';
import type { Copies } from '../log/bucket/copies.js';
import type { ForeignSegments } from '../log/foreign-segments.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { OtlpCodec, OtlpEncoding } from '../otlp/otlp-codec.js';
import type { WholeBody } from '../otlp/read-body.js';
import type { Refusal } from '../otlp/refusal.js';
import type { Sender } from '../record/attributes.js';
import type { RecordConsumer, Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { Fence } from '../storage/journal-store.js';
import type { TelemetryStorage } from '../storage/retention-store.js';
import type { State } from '../storage/state.js';
import type { RunListener, StepListener } from './run-event.js';
import type { RunSummary } from './verdict.js';

/**
 * The record log where several processes share the work: a journal comes before it, and one process a trace makes the log
 * of it. The rest of the program knows this interface and no journal, so that another one can take its place.
 */
export interface SharedRecordLog extends StepListener {
  /** Accepts requests and deliveries: they are on no single disk when it resolves. */
  readonly writer: SharedLogWriter;
  /** Makes logs of the traces that this process has. */
  readonly building: readonly Component[];
  /** How much of a log no crash of this machine can lose; 0 where another process has the trace. */
  storedBytes(traceId: TraceId): number;
  /** How the part of the work goes that this process has. */
  health(): HealthState;
  /**
   * Whatever is in the log of a trace now can be lost no more when it resolves.
   * @param isFinished its run is over
   * @returns false where another process has the trace
   */
  store(traceId: TraceId, isFinished: boolean): Promise<boolean>;
  /** Parts that are there before all that follows logs. */
  readonly first: readonly Component[];
  /** Where files of runs are, to be counted and removed. */
  readonly place: TelemetryStorage;
  /** Files of runs, on this machine when they are asked for. */
  readonly telemetry: Pick<Copies, 'find' | 'bringAll'>;
  /** Has files of runs shared when they are written. @param parquet `null` where none is written */
  sharing(parquet: RunListener | null): RunListener;
  /** Reads logs that this process has. */
  readonly ownReader: RecordLogReader;
  /** Reads any log. */
  readonly reader: RecordLogReader;
  /** Finds any run. @param own finds those that this process has */
  runsOf(own: RunFinder): RunFinder;
}

/** What accepts telemetry for all processes; refuses it while it can accept none. */
export interface SharedLogWriter extends Component, RecordConsumer, Guard {
  /** Accepts a request in OTLP; see `BodyConsumer` of the receiver. */
  consumeBody(
    signal: Signal,
    encoding: OtlpEncoding,
    body: WholeBody,
    sender: Sender,
  ): Promise<{ readonly itemCount: number; readonly rejectedCount: number; readonly rejectionMessage: string }>;
  health(): HealthState;
}

/** Finds runs as they are known now. */
export interface RunFinder {
  find(traceId: TraceId): Promise<RunSummary | undefined>;
}

/** A shared record log that is open for one process, before what follows logs is made. */
export interface SharedLogOpening {
  /** Who this process is among those that share the work. */
  readonly fence: Fence;
  /** Where logs and files of runs are on this machine, in `runs/`. */
  readonly folder: string;
  create(host: SharedLogHost): SharedRecordLog;
}

/**
 * Where record logs and files of runs of one of several processes are, in `runs/`: what it builds, and copies of what is in the
 * bucket.
 */
export function sharedLogFolder(dataFolder: string): string {
  return join(dataFolder, 'journal');
}

/** What a shared record log needs of the program. */
export interface SharedLogHost {
  readonly state: State;
  readonly foreign: ForeignSegments;
  readonly follower: TraceFollower;
  /** Names of destinations. */
  readonly destinations: () => readonly string[];
  /** Makes an intake of its own for requests in OTLP that come another way than over the network. */
  readonly intakeFor: (consumer: RecordConsumer) => OtlpIntake;
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  readonly onDamage: (traceId: string, offset: number, reason: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Takes requests in OTLP; see `ExportIntake`. */
export interface OtlpIntake {
  makeRoom(announcedBytes: number): { readonly reservation: { release(): void } };
  take(signal: Signal, encoding: OtlpEncoding, body: WholeBody, sender: Sender): Promise<Uint8Array>;
  refuse(error: unknown): Refusal;
}

/** Follows the logs of the traces that this process has. */
export interface TraceFollower {
  /** Parts of a trace have become known; lent for the time of the call, which must not wait. */
  onAppended(appended: Appended): void;
  /** So much of a log can be lost no more: what leaves the program stands on nothing else. */
  onStored(traceId: TraceId, lengthBytes: number): void;
  /** A trace came from another process, or from the bucket: its log is here as a whole. */
  adopt(traceId: TraceId, lengthBytes: number): Promise<void>;
  /** More is known of the steps of a trace. */
  onStepsChanged(traceId: TraceId): void;
  /** Whether everything about the trace is reported and written. */
  isSettled(traceId: TraceId): Promise<boolean>;
  /** The trace is another's, or nobody's: nothing is known of it any more when this resolves. */
  drop(traceId: TraceId): Promise<void>;
}
