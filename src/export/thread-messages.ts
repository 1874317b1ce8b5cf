import type { Configuration } from '../config/configuration.js';
import type { LogFields, Logger } from '../core/logger.js';
import type { ForeignPosition } from '../log/foreign-segments.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { RunEvent } from '../run/run-event.js';
import type { RunSummary } from '../run/verdict.js';
import type { Fence } from '../storage/fence.js';
import type { DestinationStatus } from './destination.js';
import type { DestinationTest } from './destination-test.js';

/** What the thread is started with. */
export interface ThreadSetup {
  readonly configuration: Configuration;
  /** Addresses and names of this machine, to notice a destination that is the program itself; `null` where it listens nowhere. */
  readonly ownHosts: readonly string[] | null;
  /** The program's version. */
  readonly version: string;
  /** Where several processes share the database; `null` for one alone. */
  readonly cluster: ThreadCluster | null;
}

/** What the thread knows of the processes that share a database. */
export interface ThreadCluster {
  /** This one. */
  readonly fence: Fence;
  /** Folder of the record logs that it has, in `runs/`. */
  readonly folder: string;
}

/** Events of runs that concern exports. */
export type ExportedRunEvent = Extract<RunEvent, { readonly type: 'started' | 'finished' }>;

/** What the thread offers. */
export interface ExportThreadCalls {
  /** Opens every destination. @returns each one's name and where it is; or why the configuration cannot be used */
  open(
    nothing: undefined,
  ): Promise<
    | { readonly destinations: readonly (readonly [name: string, where: string])[] }
    | { readonly problems: readonly string[] }
  >;
  /** Opens the state and starts a worker for each destination. What came before is taken up then. */
  start(nothing: undefined): Promise<void>;
  /** @returns whether everything was exported before the deadline */
  flush(nothing: undefined, deadline: AbortSignal): Promise<boolean>;
  /** Sends a test past all queues. @returns `undefined` where there is no destination of that name */
  test(destination: string, deadline: AbortSignal): Promise<DestinationTest | undefined>;
  /** Sends a run again from its first record. @param of the destination; `null` for all of them */
  resend(of: { readonly traceIds: readonly TraceId[]; readonly destination: string | null }): Promise<void>;
  shutdown(nothing: undefined, deadline: AbortSignal): Promise<void>;
  /** The record log of a trace is durable up to a length; the thread reads it itself. */
  appended(log: { readonly traceId: TraceId; readonly lengthBytes: number }): void;
  runEvent(event: ExportedRunEvent): void;
  /** A record log is looked after elsewhere. */
  drop(traceId: TraceId): void;
  /** The telemetry of other services is durable up to this position. */
  foreign(end: ForeignPosition): void;
  /** Memory is short. */
  collectGarbage(nothing: undefined): void;
}

/** What the thread may call. */
export interface ExportStarterCalls {
  /** Length of the durable part of a record log; 0 where it is not known. */
  lengthBytes(traceId: TraceId): Promise<number>;
  /** A run as it is known. */
  findRun(traceId: TraceId): Promise<RunSummary | undefined>;
  /** So many lengths and events were taken in. */
  acknowledged(messages: number): void;
  status(statuses: readonly DestinationStatus[]): void;
  log(line: { readonly level: keyof Logger; readonly fields: LogFields; readonly message: string }): void;
}
