import type { Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import type { Invocation, ProcessContext, WithState } from './cli/command.js';
import type { Configuration } from './config/configuration.js';
import type { Clock } from './core/clock.js';
import type { Component } from './core/lifecycle.js';
import type { Logger } from './core/logger.js';
import type { MetricSource } from './metric/feature.js';
import type { RecordConsumer } from './record/record-batch.js';
import type { TraceId } from './record/telemetry-record.js';
import type { StepRegistry } from './run/step-registry.js';
import type { ArtifactSink } from './storage/artifacts.js';
import type { State } from './storage/state.js';

/** The parts that a feature adds to the program. Functions are called on first use, so that a start loads none of their code. */
export interface Feature {
  /** Started with the program, in this order. */
  readonly components: readonly Component[];
  /** Routers of the API, with whole paths; they stand behind its tokens. */
  readonly api?: () => Promise<readonly Router[]>;
  /** Describes those routers for `/api/openapi.json`. */
  readonly apiPaths?: () => Promise<ZodOpenApiPathsObject>;
  /** Pages, with whole paths; they stand behind the sign-in. */
  readonly pages?: () => Promise<Router>;
  readonly metrics?: () => Promise<MetricSource>;
}

/** Functions of the program for commands of features. Each loads its code when it is called. */
export interface CommandHost {
  /**
   * Reads from the state of a data folder what no other file contains, for example ids of runs. A bridge may be running on it.
   * @returns `undefined` if there is no readable state: commands that read the folder do not fail for that
   */
  askState<Answer>(
    configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
    clock: Clock,
    ask: (state: State) => Promise<Answer>,
  ): Promise<Answer | undefined>;
  /** Opens the state of a data folder that this process has taken. @throws StoreError */
  openState(configuration: Configuration, clock: Clock): Promise<State>;
  readonly withState: WithState;
  /** Opens the data folder for records that a command brings: the program without its ports. @throws DataFolderInUseError, StoreError, ConfigurationError */
  openStore(configuration: Configuration, context: ProcessContext, logger: Logger): Promise<CommandStore>;
  /**
   * Locks the data folder, or finds the bridge that has it.
   * @throws CliError, ConfigurationError, StoreError, OutputError
   */
  openIntake(
    invocation: Pick<Invocation, 'context' | 'flags'>,
    configuration: Configuration,
    logger: Logger,
    options: IntakeOptions,
  ): Promise<Intake>;
  /** Finishes the runs of a command whose `exec` was killed, so that a command that reads files finds them whole. */
  finishLeftovers(configuration: Configuration, context: ProcessContext): Promise<void>;
}

/** What commands that bring records need of the program. */
export type IntakeHost = Pick<CommandHost, 'openIntake'>;

/** How a command hands over its records. */
export interface IntakeOptions {
  /** Whether runs are judged together, when all of their records are there, and nobody is notified of them. */
  readonly isImport: boolean;
  /**
   * How long to wait for an overloaded bridge at a time, in milliseconds; `null` not to wait for one that does not answer,
   * and to ask an overloaded one 20 times. Default: no limit.
   */
  readonly maxWaitMs?: number | null;
}

/** Where a command's records go: its own data folder, or a bridge that runs. */
export interface Intake {
  readonly consumer: RecordConsumer;
  /** What has the data folder open; `undefined` if the records are handed over. */
  readonly program: CommandProgram | undefined;
  /** The bridge that receives the records; `undefined` if there is none. */
  readonly url: string | undefined;
  /** Where the records go, in one or two lines, in the format of `serve`. */
  readonly whereLines: readonly string[];
  /** Whether a folder is one that a command under `exec` left behind. */
  isOfCommand(folder: string): boolean;
  /**
   * Imports the folder of a command under `exec`, with its job and how it ended. @returns the number of its records.
   * @throws DataFolderInUseError while its command is running
   */
  takeInCommand(folder: string): Promise<number>;
  /** Sends what is held back until a span ends. */
  settle(): Promise<void>;
  /**
   * Finishes the runs in the data folder, and exports them as far as destinations take them in `exportMs`.
   * @param stop ends it at once
   * @returns whether everything was exported; true where a bridge does it
   */
  finish(traceIds: Iterable<TraceId>, stop: AbortSignal, exportMs: number): Promise<boolean>;
  /** @throws AggregateError when not everything ended cleanly. */
  shutdown(): Promise<void>;
}

/** The program at work on what a command brings. */
export interface CommandStore {
  readonly program: CommandProgram;
  /** Sends a run to destinations again, all where none is named. @throws ApiError 404, RunResendError, StoreError */
  readonly resender: {
    resend(
      accountId: number,
      name: string,
      destination: string | null,
    ): Promise<{ readonly runId: number; readonly destinations: readonly string[] }>;
  };
  /** Waits until the runs of the command are judged, written and exported. @returns whether everything was exported by `deadline` */
  finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean>;
}

/** What a command hands records and steps to. */
export interface CommandProgram {
  /** Resolves when records are durable. */
  readonly consumer: RecordConsumer;
  readonly registry: StepRegistry;
  readonly artifacts: ArtifactSink;
  readonly state: State;
  /** Each destination: its name and where it is. */
  readonly destinations: readonly (readonly [string, string])[];
  start(): Promise<void>;
  /** Waits until everything is exported. @returns whether it was by `deadline` */
  exported(deadline: AbortSignal): Promise<boolean>;
  shutdown(deadline: AbortSignal): Promise<void>;
}
