/** What is known of a metric before anybody reads it. */
export interface MetricDefinition {
  /** A counter begins at 0 with the process and only grows; a gauge is how things are now. */
  readonly kind: 'counter' | 'gauge';
  /** One sentence; scrapers show it. */
  readonly help: string;
  /** Names of its labels, all of which every sample has. Each label's values are a bounded set. */
  readonly labels: readonly string[];
}
