import type { METRICS } from './metrics.js';

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;

/** What a histogram has counted. */
export interface Distribution {
  /** For each bound, what was counted up to it and above the bound before it; last, what was above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
  /** The latest of what each count holds, in the same order. */
  readonly examples: readonly (Example | undefined)[];
}

/** A value that was counted, and the trace that it is from. */
export interface Example {
  readonly value: number;
  readonly traceId: string;
  readonly unixSeconds: number;
}

/** A value of a metric, with exactly its labels. */
export type Sample = {
  [N in MetricName]: {
    readonly name: N;
    readonly value: (typeof METRICS)[N]['kind'] extends 'histogram' ? Distribution : number;
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
