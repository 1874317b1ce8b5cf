import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import { metricDestinations } from '../config/otlp-destinations.js';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { DestinationStatus } from '../export/feature.js';
import type { State } from '../storage/state.js';
import { MetricPush } from './metric-push.js';
import type { RunMetricsDeps } from './run-metrics.js';
import type { MetricSource } from './samples.js';
import type { ProcessMetricsDeps, ReceiverMetricsDeps } from './sources.js';

// The door of metrics: other folders import only this file. The code that formats them is loaded by the first scrape.

export { type MetricSource, type Sample, stateSamples } from './samples.js';

/** What metrics of runs need of the program. */
export interface RunMetricsHost extends Pick<RunMetricsDeps, 'measures' | 'clock'> {
  readonly state: Pick<State, 'runTotals' | 'catalog'>;
  readonly logger: Logger;
  readonly version: string;
}

/** Metrics of runs: a `Feature`, which is not named here since it knows metrics. */
export interface RunMetricsFeature {
  /** What pushes them to destinations. */
  readonly components: readonly Component[];
  readonly metrics: () => Promise<MetricSource>;
}

/** Creates the metrics of runs. */
export function createRunMetrics(
  config: Pick<Configuration, 'node-metrics' | 'destinations' | 'environmentMetrics' | 'metricsIntervalMs'>,
  { state, measures, clock, logger, version }: RunMetricsHost,
): RunMetricsFeature {
  const maxNodes = config['node-metrics'];
  let opened: Promise<MetricSource> | undefined;
  const metrics = () => {
    opened ??= import('./run-metrics.js').then(
      ({ RunMetrics }) =>
        new RunMetrics({ totals: state.runTotals, catalog: state.catalog, measures, maxNodes, clock, logger }),
    );
    return opened;
  };
  const destinations = metricDestinations(config);
  const push = { destinations, intervalMs: config.metricsIntervalMs, openSource: metrics, version, clock, logger };
  return { components: destinations.length === 0 ? [] : [new MetricPush(push)], metrics };
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
