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

/** Reads metrics of one part of the program, on demand. */
export interface MetricSource {
  /** Unique, for `run_bridge_source_up`. */
  readonly name: string;
  /** How things are now. What it throws costs the scrape these metrics, and no others. */
  read(): readonly Sample[] | Promise<readonly Sample[]>;
}

/**
 * A sample for each state that something can be in: 1 for the one that it is in, 0 for the others, so that no state is a
 * series that comes and goes.
 */
export function stateSamples<S extends string, T>(
  states: readonly S[],
  current: S,
  toSample: (state: S, value: number) => T,
): readonly T[] {
  return states.map((state) => toSample(state, state === current ? 1 : 0));
}
