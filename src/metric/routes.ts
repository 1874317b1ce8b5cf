import { setImmediate } from 'node:timers/promises';
import { Router } from 'express';
import { Counter, Gauge, Histogram, Registry, type RegistryContentType } from 'prom-client';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { METRICS_PATH } from '../api/metrics-path.js';
import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { groupBy } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { METRICS, type MetricDefinition } from './metrics.js';
import type { Distribution, MetricSource, Sample } from './samples.js';

/** The formats in order of preference; the first one is also for clients that accept anything, or none of them. */
const OFFERED = [
  'text/plain; version=0.0.4',
  'application/openmetrics-text; version=1.0.0',
  // Prometheus 3 sends these; the names here need no escaping, so they are the same format.
  'application/openmetrics-text; version=1.0.0; escaping=allow-utf-8',
  'application/openmetrics-text; version=1.0.0; escaping=underscores',
];

/** Serves `GET /metrics`, in Prometheus' text format or in OpenMetrics if the scraper prefers it. The metrics cover the whole program, so tokens of other accounts are refused. */
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

/** The response to a scraper. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** The formats: https://prometheus.io/docs/instrumenting/exposition_formats, https://prometheus.io/docs/specs/om/open_metrics_spec. */
export type ExpositionFormat = 'prometheus' | 'openmetrics';

/**
 * Formats samples as text, one metric at a time with pauses in between: with a thousand subscriptions the text has two megabytes, and other requests must not wait for all of it. The library's
 * registry is created for each response: counts are kept in the parts of the program, and removed objects (a subscription) disappear from the response.
 */
export async function writeExposition(samples: readonly Sample[], format: ExpositionFormat): Promise<Exposition> {
  const registry = new Registry<RegistryContentType>();
  if (format === 'openmetrics') registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const groups = groupBy(samples, ({ name }): string => name);
  const lines: string[] = [];
  for (const [name, definition] of Object.entries(METRICS)) {
    const ofMetric = groups.get(name);
    if (ofMetric === undefined) continue;
    // OpenMetrics names a counter without `_total`, which only its samples have.
    const family = format === 'openmetrics' ? name.replace(/_total$/, '') : name;
    registry.registerMetric(toMetric(family, definition, ofMetric));
    lines.push(await registry.getSingleMetricAsString(family));
    registry.clear();
    await setImmediate();
  }
  if (format === 'openmetrics') lines.push('# EOF');
  return { contentType: registry.contentType, text: `${lines.join('\n')}\n` };
}

function toMetric(
  name: string,
  { kind, help, labels: labelNames, bounds = [] }: MetricDefinition,
  samples: readonly Sample[],
) {
  if (kind === 'histogram') return new CountedHistogram(name, help, bounds, samples);
  const configuration = { name, help, labelNames, registers: [] };
  const metric = kind === 'counter' ? new Counter<string>(configuration) : new Gauge<string>(configuration);
  for (const { labels, value } of samples) if (typeof value === 'number') metric.inc(labels, value);
  return metric;
}

/** A histogram of what was counted elsewhere; the library's counts what it observes. */
class CountedHistogram extends Histogram<string> {
  constructor(
    private readonly family: string,
    private readonly text: string,
    private readonly bounds: readonly number[],
    private readonly samples: readonly Sample[],
  ) {
    super({ name: family, help: text, registers: [] });
  }

  /** Returns what the registry writes; it asks this rather than `get`, in `prom-client` 15. */
  getForPromString() {
    const values = this.samples.flatMap(({ labels, value }) =>
      typeof value === 'number' ? [] : this.lines(labels, value),
    );
    return { name: this.family, help: this.text, type: 'histogram', values };
  }

  private lines(labels: Readonly<Record<string, string>>, { counts, sum, examples }: Distribution) {
    const name = this.family;
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      const example = examples[index];
      const exemplar = example && {
        labelSet: { trace_id: example.traceId },
        value: example.value,
        timestamp: example.unixSeconds,
      };
      const le = this.bounds[index] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total, exemplar };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: total },
    ];
  }
}

/** Dependencies of a scrape. */
export interface ScrapeDeps {
  readonly sources: readonly MetricSource[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The timeout for one part, in milliseconds; scrapers wait for 10 s by default. */
const TIMEOUT_MS = 5_000;

/**
 * Reads the metrics of all parts. A part that fails or does not answer in time (an unreachable database) is left out, which `run_bridge_source_up` shows. Concurrent scrapes share the reading of each
 * part.
 */
export class Scrape {
  private readonly reading = new Map<MetricSource, Promise<readonly Sample[]>>();
  private readonly failing = new Set<MetricSource>();

  constructor(private readonly deps: ScrapeDeps) {}

  async read(): Promise<readonly Sample[]> {
    const answers = await Promise.all(this.deps.sources.map((source) => this.readOne(source)));
    return answers.flat();
  }

  private async readOne(source: MetricSource): Promise<readonly Sample[]> {
    const up = (value: number): Sample => ({
      name: 'run_bridge_source_up',
      value,
      labels: { source: source.name },
    });
    try {
      const samples = await this.inTime(this.ask(source));
      this.failing.delete(source);
      return [...samples, up(1)];
    } catch (error) {
      this.logFailure(source, error);
      return [up(0)];
    }
  }

  /** Reads a part, or joins a reading in progress. */
  private ask(source: MetricSource): Promise<readonly Sample[]> {
    const known = this.reading.get(source);
    if (known !== undefined) return known;
    const asked = Promise.resolve()
      .then(() => source.read())
      .finally(() => this.reading.delete(source));
    this.reading.set(source, asked);
    return asked;
  }

  private async inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: Timer | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.deps.clock.after(TIMEOUT_MS, () => reject(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer?.cancel();
    }
  }

  /** Logs a failure once until the part answers again. */
  private logFailure(source: MetricSource, error: unknown): void {
    if (this.failing.has(source)) return;
    this.failing.add(source);
    this.deps.logger.warn({ source: source.name, reason: reasonOf(error) }, 'failed to collect metrics');
  }
}
