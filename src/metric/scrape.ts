import type { Clock, Timer } from '../component/clock.js';
import type { Logger } from '../component/logger.js';
import { reasonOf } from '../component/reason-of.js';
import type { MetricSource } from './metric-source.js';
import type { Sample } from './sample.js';

/** What a scrape works with. */
export interface ScrapeDeps {
  readonly sources: readonly MetricSource[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A part has so long to say how it is, in milliseconds: scrapers wait for 10 s by default. */
const TIMEOUT_MS = 5_000;

/**
 * Reads the metrics of all parts. One that fails or does not answer (a database that is away) is left out, and
 * `run_bridge_source_up` says so. Each part is asked once at a time, however many scrapers there are.
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
      this.say(source, error);
      return [up(0)];
    }
  }

  /** Whoever comes while a part is being asked gets the same answer. */
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

  /** Once until it answers again. */
  private say(source: MetricSource, error: unknown): void {
    if (this.failing.has(source)) return;
    this.failing.add(source);
    this.deps.logger.warn({ source: source.name, reason: reasonOf(error) }, 'failed to collect metrics');
  }
}
