import type { Router } from 'express';
import type { Clock } from '../core/clock.js';
import type { Health } from '../core/health.js';
import type { Logger } from '../core/logger.js';
import type { DestinationStatus } from '../export/feature.js';
import type { MetricSource } from './samples.js';
import type { ProcessMetricsDeps, ReceiverMetricsDeps } from './sources.js';

// The door of metrics: no other folder imports anything else of this one. The code that writes them is loaded by the first scrape.

export { type MetricSource, type Sample, stateSamples } from './samples.js';

/** The parts of the program that metrics are read from. */
export interface MetricHost extends ProcessMetricsDeps, ReceiverMetricsDeps {
  readonly health: Pick<Health, 'report'>;
  /** `undefined` where nothing is exported. */
  readonly exports: { statuses(): readonly DestinationStatus[] } | undefined;
  /** Metrics of features. */
  readonly added: readonly (() => Promise<MetricSource>)[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Metrics of the whole program, each read on demand. */
export interface Metrics {
  /** `GET /metrics`; it stands behind the API's tokens. */
  router(): Promise<Router>;
}

/** Metrics of a running program. */
export function createMetrics(host: MetricHost): Metrics {
  return {
    async router() {
      const { healthMetrics, processMetrics, receiverMetrics, destinationMetrics } = await import('./sources.js');
      const { metricRouter, Scrape } = await import('./routes.js');
      const { health, exports, added, clock, logger } = host;
      const sources = [
        processMetrics(host),
        healthMetrics(health),
        receiverMetrics(host),
        ...(exports === undefined ? [] : [destinationMetrics(() => exports.statuses())]),
        ...(await Promise.all(added.map((open) => open()))),
      ];
      return metricRouter(new Scrape({ sources, clock, logger }));
    },
  };
}
