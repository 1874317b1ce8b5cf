import { setImmediate } from 'node:timers/promises';
import { Router } from 'express';
import { Counter, Gauge, Registry, type RegistryContentType } from 'prom-client';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticate.js';
import { METRICS_PATH } from '../api/metrics-path.js';
import { groupBy } from '../component/group-by.js';
import { FIRST_ACCOUNT_ID } from '../store/account-store.js';
import type { MetricDefinition } from './metric-definition.js';
import { METRICS } from './metrics.js';
import type { Sample } from './sample.js';
import type { Scrape } from './scrape.js';

/** What scrapers may accept; the first one also who accepts anything, or none of them. */
const OFFERED = [
  'text/plain; version=0.0.4',
  'application/openmetrics-text; version=1.0.0',
  // Prometheus 3 says so; names here need no escaping, so these are the same.
  'application/openmetrics-text; version=1.0.0; escaping=allow-utf-8',
  'application/openmetrics-text; version=1.0.0; escaping=underscores',
];

/**
 * `GET /metrics`, in Prometheus' text format, or OpenMetrics where the scraper would rather have that. It is of the whole
 * program, so other accounts' tokens are refused.
 */
export function metricRouter(scrape: Pick<Scrape, 'read'>): Router {
  const router = Router();
  router.get(METRICS_PATH, authorize('metrics:read'), async (request, response) => {
    if (callerOf(response).accountId !== FIRST_ACCOUNT_ID) {
      throw new ApiError(403, 'Metrics cover the whole program and require a token of the first account.');
    }
    const accepted = request.accepts(OFFERED) || '';
    const format = accepted.startsWith('application/openmetrics-text') ? 'openmetrics' : 'prometheus';
    const { contentType, text } = await writeExposition(await scrape.read(), format);
    response.set({ 'Content-Type': contentType, 'Cache-Control': 'no-store', Vary: 'Accept' }).send(text);
  });
  return router;
}

/** What a scraper is answered. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** How it can be written: https://prometheus.io/docs/instrumenting/exposition_formats, https://prometheus.io/docs/specs/om/open_metrics_spec. */
export type ExpositionFormat = 'prometheus' | 'openmetrics';

/**
 * Writes samples as text, a metric at a time with pauses between: with a thousand subscriptions it is two megabytes, and
 * nobody's request is to wait for all of it. The library's registry is made anew for each answer: counts are kept where
 * things happen, and what is gone (a subscription, say) is answered no longer.
 */
export async function writeExposition(samples: readonly Sample[], format: ExpositionFormat): Promise<Exposition> {
  const registry = new Registry<RegistryContentType>();
  if (format === 'openmetrics') registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const groups = groupBy(samples, ({ name }): string => name);
  const lines: string[] = [];
  for (const [name, definition] of Object.entries(METRICS)) {
    const own = groups.get(name);
    if (own === undefined) continue;
    // OpenMetrics calls a counter by its name without the end, which only its samples have.
    const family = format === 'openmetrics' ? name.replace(/_total$/, '') : name;
    registry.registerMetric(toMetric(family, definition, own));
    lines.push(await registry.getSingleMetricAsString(family));
    registry.clear();
    await setImmediate();
  }
  if (format === 'openmetrics') lines.push('# EOF');
  return { contentType: registry.contentType, text: `${lines.join('\n')}\n` };
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
