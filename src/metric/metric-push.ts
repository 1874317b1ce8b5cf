import { hostname } from 'node:os';
import type { MetricDestination } from '../config/otlp-destinations.js';
import { type Clock, FixedDelayTask } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { loadMetricSenders, type MetricSender, type SendResult } from '../export/feature.js';
import type { MetricSource } from './samples.js';

/** What pushing metrics works with. */
export interface MetricPushDeps {
  readonly destinations: readonly MetricDestination[];
  readonly intervalMs: number;
  /** Returns the source of what is pushed, the same each time. */
  readonly openSource: () => Promise<MetricSource>;
  /** The program's version. */
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Answers that no later request would change: the receiver has no metrics. */
const NO_METRICS_STATUSES: ReadonlySet<number> = new Set([404, 405, 415, 501]);

/** Pushes metrics of runs to destinations over OTLP, at an interval. Values are cumulative, so a push that fails is not repeated. */
export class MetricPush implements Component {
  readonly name = 'metrics over OTLP';
  private readonly task: FixedDelayTask;
  private readonly stopping = new AbortController();
  private readonly targets: Target[];
  private startedUnixMs = 0;

  constructor(private readonly deps: MetricPushDeps) {
    const { destinations, intervalMs, clock, logger } = deps;
    this.targets = destinations.map((destination) => ({ destination, sender: undefined, isFailing: false }));
    this.task = new FixedDelayTask(
      intervalMs,
      clock,
      () => this.push(),
      (error) => logger.warn({ reason: reasonOf(error) }, 'failed to read metrics of runs'),
    );
  }

  async start(): Promise<void> {
    this.startedUnixMs = this.deps.clock.nowUnixMs();
    if (this.targets.length > 0) this.task.start();
  }

  async shutdown(): Promise<void> {
    this.stopping.abort();
    await this.task.stop();
    for (const { sender } of this.targets) sender?.close();
  }

  private async push(): Promise<void> {
    const { openSource, version, clock } = this.deps;
    if (this.targets.length === 0) return;
    const samples = await (await openSource()).read();
    const { encodeMetrics } = await import('./otlp-metrics.js');
    const period = { sinceUnixMs: this.startedUnixMs, nowUnixMs: clock.nowUnixMs() };
    const bodyIn = (encoding: 'protobuf' | 'json') =>
      encodeMetrics(samples, period, { version, instance: hostname(), encoding });
    await Promise.all(this.targets.map((target) => this.send(target, bodyIn(target.destination.endpoint.encoding))));
  }

  private async send(target: Target, body: Uint8Array): Promise<void> {
    const { version, clock } = this.deps;
    try {
      const { openMetricSender } = await loadMetricSenders();
      target.sender ??= await openMetricSender(target.destination.endpoint, `run-bridge/${version}`, clock);
      this.note(target, await target.sender.send(body, this.stopping.signal));
    } catch (error) {
      this.fail(target, reasonOf(error));
    }
  }

  private note(target: Target, result: SendResult): void {
    if (result.kind === 'accepted') target.isFailing = false;
    else if (result.kind === 'refused' && NO_METRICS_STATUSES.has(result.status)) this.leaveOut(target, result.status);
    else this.fail(target, result.message === '' ? `status ${result.status}` : result.message);
  }

  /** A receiver of traces alone is asked once. */
  private leaveOut(target: Target, status: number): void {
    this.targets.splice(this.targets.indexOf(target), 1);
    target.sender?.close();
    const { name } = target.destination;
    this.deps.logger.info(
      { destination: name, status },
      'the destination takes no metrics; it gets none until the next start',
    );
  }

  /** Logs a failure once until a push succeeds again. */
  private fail(target: Target, reason: string): void {
    if (target.isFailing || this.stopping.signal.aborted) return;
    target.isFailing = true;
    this.deps.logger.warn(
      { destination: target.destination.name, reason },
      'failed to push metrics; the next push has all of them',
    );
  }
}

/** A destination at work. */
interface Target {
  readonly destination: MetricDestination;
  sender: MetricSender | undefined;
  isFailing: boolean;
}
