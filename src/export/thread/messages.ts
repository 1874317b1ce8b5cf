import type { Configuration } from '../../config/configuration.js';
import type { LogFields, Logger } from '../../core/logger.js';
import type { ForeignPlace } from '../../log/foreign-segments.js';
import type { TraceId } from '../../record/ids.js';
import type { RunEvent } from '../../run/run-event.js';
import type { RunSummary } from '../../run/run-summary.js';
import type { Fence } from '../../storage/fence.js';
import type { DestinationStatus } from '../destination.js';

/** What the thread is started with. */
export interface ThreadSetup {
  readonly configuration: Configuration;
  /** Addresses and names of this machine, to notice a destination that is the program itself. */
  readonly ownHosts: readonly string[];
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

/** The record log of a trace is durable up to a length; the thread reads it itself. */
interface AppendedMessage {
  readonly type: 'appended';
  readonly traceId: TraceId;
  readonly lengthBytes: number;
}

/** Events of runs that concern exports. */
export interface RunMessage {
  readonly type: 'run';
  readonly event: Extract<RunEvent, { readonly type: 'started' | 'finished' }>;
}

/** What the thread is asked to do. It says `done` with the same number. */
export interface TaskMessage {
  readonly type: 'start' | 'flush' | 'shutdown';
  readonly id: number;
}

/** Messages to the thread. */
export type ToThread =
  | AppendedMessage
  | RunMessage
  | TaskMessage
  /** The telemetry of other services is durable up to this place. */
  | { readonly type: 'foreign'; readonly end: ForeignPlace }
  /** The time for a task is over. */
  | { readonly type: 'deadline'; readonly id: number }
  /** Memory is short. */
  | { readonly type: 'collectGarbage' }
  /** A record log is looked after elsewhere. */
  | { readonly type: 'drop'; readonly traceId: TraceId }
  /** Where several processes share the database: this one goes on under another id. */
  | { readonly type: 'process'; readonly processId: string }
  | { readonly type: 'answer'; readonly id: number; readonly value: RunSummary | number | undefined };

/** Messages from the thread. */
export type FromThread =
  /** The destinations are open: each one's name and where it is. */
  | { readonly type: 'opened'; readonly destinations: readonly (readonly [string, string])[] }
  /** The configuration cannot be used. */
  | { readonly type: 'refused'; readonly problems: readonly string[] }
  /** So many messages were taken in. */
  | { readonly type: 'acknowledged'; readonly messages: number }
  | { readonly type: 'ask'; readonly id: number; readonly what: 'run' | 'length'; readonly traceId: TraceId }
  | { readonly type: 'status'; readonly statuses: readonly DestinationStatus[] }
  /** A task has come to its end: whether everything was exported, or why it failed. */
  | { readonly type: 'done'; readonly id: number; readonly isDrained: boolean; readonly error: string | null }
  | { readonly type: 'log'; readonly level: keyof Logger; readonly fields: LogFields; readonly message: string };
