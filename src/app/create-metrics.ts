import type { Router } from 'express';
import type { Clock } from '../component/clock.js';
import type { Health } from '../component/health.js';
import type { Logger } from '../component/logger.js';
import type { Exports } from '../export-thread/export-thread.js';
import { destinationMetrics } from '../metric/destination-metrics.js';
import { healthMetrics } from '../metric/health-metrics.js';
import { metricRouter } from '../metric/metric-router.js';
import type { MetricSource } from '../metric/metric-source.js';
import { type ProcessMetricsDeps, processMetrics } from '../metric/process-metrics.js';
import { type ReceiverMetricsDeps, receiverMetrics } from '../metric/receiver-metrics.js';
import { Scrape } from '../metric/scrape.js';

/** The parts that metrics are read from. */
export interface MeasuredParts extends Omit<ProcessMetricsDeps, 'version'>, ReceiverMetricsDeps {
  readonly health: Pick<Health, 'report'>;
  /** `undefined` where nothing is exported. */
  readonly exports: Pick<Exports, 'statuses'> | undefined;
}

/** What metrics are made with. */
export interface CreateMetricsDeps extends MeasuredParts {
  /** Sources of features. */
  readonly added: readonly MetricSource[];
  readonly clock: Clock;
  /** The program's version. */
  readonly version: string;
  readonly logger: Logger;
}

/** Answers with the metrics of all parts, each read when somebody asks. Loaded with the library that writes them. */
export function createMetrics(deps: CreateMetricsDeps): Router {
  const { health, exports, added, clock, logger } = deps;
  const sources = [
    processMetrics(deps),
    healthMetrics(health),
    receiverMetrics(deps),
    ...(exports === undefined ? [] : [destinationMetrics(() => exports.statuses())]),
    ...added,
  ];
  return metricRouter(new Scrape({ sources, clock, logger }));
}
