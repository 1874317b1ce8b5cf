import type { METRICS } from './metrics.js';

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;

/** A value of a metric, with exactly its labels. */
export type Sample = {
  [N in MetricName]: {
    readonly name: N;
    readonly value: number;
    readonly labels: Readonly<Record<(typeof METRICS)[N]['labels'][number], string>>;
  };
}[MetricName];

/** Reads the metrics of a part of the program, on demand. */
export interface MetricSource {
  /** A unique name, for `run_bridge_source_up`. */
  readonly name: string;
  /** Returns the current values. If it throws, only these metrics are missing in the response. */
  read(): readonly Sample[] | Promise<readonly Sample[]>;
}

/** Returns a sample for each possible state: 1 for the current one, 0 for the others, so that no series comes and goes. */
export function stateSamples<S extends string, T>(
  states: readonly S[],
  current: S,
  toSample: (state: S, value: number) => T,
): readonly T[] {
  return states.map((state) => toSample(state, state === current ? 1 : 0));
}
