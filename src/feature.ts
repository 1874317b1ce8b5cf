import type { Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import type { ProcessContext } from './cli/process-context.js';
import type { Configuration } from './config/configuration.js';
import type { Clock } from './core/clock.js';
import type { Component } from './core/lifecycle.js';
import type { Logger } from './core/logger.js';
import type { MetricSource } from './metric/feature.js';
import type { RecordConsumer } from './record/record-batch.js';
import type { TraceId } from './record/telemetry-record.js';
import type { StepRegistry } from './run/step-registry.js';
import type { ArtifactSink } from './storage/artifact/artifact-sink.js';
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

/** Functions of the program for commands of features that run without a server. Each loads its code when it is called. */
export interface CommandHost {
  /**
   * Reads from the state of a data folder what no other file contains, for example ids of runs. A bridge may be running on it.
   * @returns `undefined` if there is no readable state
   */
  askState<Answer>(
    configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
    clock: Clock,
    ask: (state: State) => Promise<Answer>,
  ): Promise<Answer | undefined>;
  /** Opens the state of a data folder that this process has taken. @throws StoreError */
  openState(configuration: Configuration, clock: Clock): Promise<State>;
  /** Opens the data folder for records that a command brings: the program without its ports. @throws DataFolderInUseError, StoreError, ConfigurationError */
  openStore(configuration: Configuration, context: ProcessContext, logger: Logger): Promise<CommandStore>;
  /** Finishes the runs of a command whose `exec` was killed, so that a command that reads files finds them whole. */
  finishLeftovers(configuration: Configuration, context: ProcessContext): Promise<void>;
}

/** The program at work on what a command brings. */
export interface CommandStore {
  readonly program: CommandProgram;
  /** Waits until the runs of the command are judged, written and exported. @returns whether everything was exported by `deadline` */
  finish(traceIds: Iterable<TraceId>, deadline: AbortSignal): Promise<boolean>;
}

/** What a command hands records and steps to. */
export interface CommandProgram {
  /** Resolves when records are durable. */
  readonly consumer: RecordConsumer;
  readonly registry: StepRegistry;
  readonly artifacts: ArtifactSink;
  /** Each destination: its name and where it is. */
  readonly destinations: readonly (readonly [string, string])[];
  start(): Promise<void>;
  shutdown(deadline: AbortSignal): Promise<void>;
}
