import type { Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { RunFinder } from '../api/native/run-finder.js';
import type { State } from '../storage/state.js';
import { RunResender, type RunResenderDeps } from './run-resender.js';

// The door of exports: no other folder imports anything else of this one. What maps and sends runs is loaded when it is needed.

export type { DestinationStatus, SendResult, SignalStatus } from './destination.js';
export type { Exports, ExportsConfig } from './exports.js';
export type { MetricSender } from './metric-sender.js';
export type { DestinationTest, TestAnswer } from './open-destinations.js';

/** What sends runs again works with. */
export interface ResendHost extends Pick<RunResenderDeps, 'exports'> {
  readonly state: Pick<State, 'catalog' | 'traces'>;
  /** The program's version. */
  readonly version: string;
}

/** Sends runs to destinations again: a `Feature`, which is not named here since its metrics know destinations. */
export interface ResendFeature {
  readonly resender: RunResender;
  readonly components: readonly [];
  readonly api: () => Promise<readonly Router[]>;
  readonly apiPaths: () => Promise<ZodOpenApiPathsObject>;
  readonly pages: () => Promise<Router>;
}

/** Creates what sends runs again, with its route and its page. */
export function createResend(config: { readonly processes: 'one' | 'several' }, host: ResendHost): ResendFeature {
  const { state, exports, version } = host;
  const finder = new RunFinder({ catalog: state.catalog, traces: state.traces });
  const resender = new RunResender({ finder, exports, isShared: config.processes === 'several' });
  return {
    resender,
    components: [],
    api: async () => [(await import('./resend-routes.js')).resendRouter(resender)],
    apiPaths: async () => (await import('./resend-routes.js')).RESEND_PATHS,
    pages: async () => (await import('./resend-routes.js')).resendPages(resender, version),
  };
}

/** Loads what sends metrics to destinations. */
export function loadMetricSenders() {
  return import('./metric-sender.js');
}

/** Loads what sends runs to destinations. */
export function loadExports() {
  return import('./exports.js');
}
