import type { METRICS } from './metrics.js';

/** A metric's name. */
export type MetricName = keyof typeof METRICS;

/** One value of a metric, with exactly the labels that it has. */
export type Sample = {
  [N in MetricName]: {
    readonly name: N;
    readonly value: number;
    readonly labels: Readonly<Record<(typeof METRICS)[N]['labels'][number], string>>;
  };
}[MetricName];
