import { Counter, Gauge, Registry, type RegistryContentType } from 'prom-client';
import type { MetricDefinition } from './metric-definition.js';
import { METRICS } from './metrics.js';
import type { Sample } from './sample.js';

/** What a scraper is answered. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** How it can be written: https://prometheus.io/docs/instrumenting/exposition_formats, https://prometheus.io/docs/specs/om/open_metrics_spec. */
export type ExpositionFormat = 'prometheus' | 'openmetrics';

/**
 * Writes samples as text. The library's registry is made anew for each answer: counts are kept where things happen, and
 * what is gone (a subscription, say) is answered no longer.
 */
export async function writeExposition(samples: readonly Sample[], format: ExpositionFormat): Promise<Exposition> {
  const registry = new Registry<RegistryContentType>();
  if (format === 'openmetrics') registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const groups = groupByName(samples);
  for (const [name, definition] of Object.entries(METRICS)) {
    const own = groups.get(name);
    if (own !== undefined) registry.registerMetric(toMetric(name, definition, own));
  }
  return { contentType: registry.contentType, text: await registry.metrics() };
}

function toMetric(name: string, { kind, help, labels: labelNames }: MetricDefinition, samples: readonly Sample[]) {
  const configuration = { name, help, labelNames, registers: [] };
  if (kind === 'counter') {
    const counter = new Counter<string>(configuration);
    for (const { labels, value } of samples) counter.inc(labels, value);
    return counter;
  }
  const gauge = new Gauge<string>(configuration);
  for (const { labels, value } of samples) gauge.set(labels, value);
  return gauge;
}

function groupByName(samples: readonly Sample[]): ReadonlyMap<string, readonly Sample[]> {
  const groups = new Map<string, Sample[]>();
  for (const sample of samples) {
    const group = groups.get(sample.name);
    if (group === undefined) groups.set(sample.name, [sample]);
    else group.push(sample);
  }
  return groups;
}
