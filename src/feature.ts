import type { Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import type { ProcessContext } from './cli/process-context.js';
import type { Configuration } from './config/configuration.js';
import type { Clock } from './core/clock.js';
import type { Component } from './core/component.js';
import type { MetricSource } from './metric/feature.js';
import type { State } from './storage/state.js';

/** What a feature adds to the program. What is a function is called when somebody first asks for it, so that a start loads none of it. */
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

/** What commands of features need of a program that is not at work. Each function loads what it does when it is called. */
export interface CommandHost {
  /**
   * Reads from the state of a data folder what no other file contains, for example ids of runs. A bridge may be running on it.
   * @returns `undefined` where there is no state, or none that can be read
   */
  askState<Answer>(
    configuration: Pick<Configuration, 'data-dir' | 'database-url'>,
    clock: Clock,
    ask: (state: State) => Promise<Answer>,
  ): Promise<Answer | undefined>;
  /** Finishes the runs of a command whose `exec` was killed, so that a command that reads files finds them whole. */
  finishLeftovers(configuration: Configuration, context: ProcessContext): Promise<void>;
}
