import type { Sample } from './sample.js';

/** Reads metrics of one part of the program, when somebody asks for them. */
export interface MetricSource {
  /** Unique, for `run_bridge_source_up`. */
  readonly name: string;
  /** How things are now. What it throws costs the scrape these metrics, and no others. */
  read(): readonly Sample[] | Promise<readonly Sample[]>;
}
