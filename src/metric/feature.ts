import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import type { Logger } from '../core/logger.js';
import type { DestinationStatus } from '../export/feature.js';
import type { State } from '../storage/state.js';
import type { RunMetricsDeps } from './run-metrics.js';
import type { MetricSource } from './samples.js';
import type { ProcessMetricsDeps, ReceiverMetricsDeps } from './sources.js';

// The door of metrics: other folders import only this file. The code that formats them is loaded by the first scrape.

export { type MetricSource, type Sample, stateSamples } from './samples.js';

/** What metrics of runs need of the program. */
export interface RunMetricsHost extends Pick<RunMetricsDeps, 'measures' | 'clock'> {
  readonly state: Pick<State, 'runTotals' | 'catalog'>;
}

/** Creates the feature that has metrics of runs. */
export function createRunMetrics(
  config: Pick<Configuration, 'node-metrics'>,
  host: RunMetricsHost,
): { readonly components: readonly []; metrics(): Promise<MetricSource> } {
  const { state, measures, clock } = host;
  return {
    components: [],
    async metrics() {
      const { RunMetrics } = await import('./run-metrics.js');
      const { runTotals: totals, catalog } = state;
      return new RunMetrics({ totals, catalog, measures, maxNodes: config['node-metrics'], clock });
    },
  };
}

/** The parts of the program that metrics are read from. */
export interface MetricHost extends Omit<ProcessMetricsDeps, 'startedUnixMs'>, ReceiverMetricsDeps {
  readonly health: Pick<Health, 'report'>;
  /** The exports; `undefined` if nothing is exported. */
  readonly exports: { statuses(): readonly DestinationStatus[] } | undefined;
  /** Parts with further metrics. */
  readonly features: readonly { readonly metrics?: () => Promise<MetricSource> }[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The metrics of the whole program, read on demand. */
export interface Metrics {
  /** Returns the router of `GET /metrics`, to be mounted behind the API's tokens. */
  router(): Promise<Router>;
}

/** Creates the metrics of a program that starts now. */
export function createMetrics(host: MetricHost): Metrics {
  const startedUnixMs = host.clock.nowUnixMs();
  return {
    async router() {
      const { healthMetrics, processMetrics, receiverMetrics, destinationMetrics } = await import('./sources.js');
      const { metricRouter, Scrape } = await import('./routes.js');
      const { health, exports, features, clock, logger } = host;
      const sources = [
        processMetrics({ ...host, startedUnixMs }),
        healthMetrics(health),
        receiverMetrics(host),
        ...(exports === undefined ? [] : [destinationMetrics(() => exports.statuses())]),
        ...(await Promise.all(features.flatMap(({ metrics }) => metrics?.() ?? []))),
      ];
      return metricRouter(new Scrape({ sources, clock, logger }));
    },
  };
}
