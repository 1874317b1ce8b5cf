/** A limit of a line's figure. */
export interface Limit {
  readonly figure: 'cpu' | 'spansPerSecond' | 'p99' | 'memory';
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** One kind of work that both programs do. */
export interface Line {
  readonly name: string;
  readonly what: string;
  /** The Collector's configuration in `test/tool/peers/conf`. */
  readonly collector: string;
  /** Flags of `run-bridge serve`. */
  readonly args: readonly string[];
  /** Whether spans go on to the sink, and how they are compressed on the way. */
  readonly compression?: 'none' | 'gzip';
  readonly parquet: boolean;
  /** Limits of run-bridge's figure as a share of the Collector's. */
  readonly limits: readonly Limit[];
}

const FULL: readonly Limit[] = [
  { figure: 'cpu', atMost: 0.6 },
  { figure: 'spansPerSecond', atLeast: 1.5 },
  { figure: 'p99', atMost: 1 },
  { figure: 'memory', atMost: 2 },
];

/**
 * The load's traces have no invocation span, so their end is told by silence: short enough to see the Parquet written,
 * longer than any pause of the load.
 */
const PARQUET_ON = ['--parquet', 'on', '--invocation-silence', '2s'];

/** The lines of the table, in its order. */
export const LINES: readonly Line[] = [
  {
    name: 'file',
    what: 'record log (synced) : JSON file',
    collector: 'otelcol-file',
    args: ['--parquet', 'off'],
    parquet: false,
    limits: [{ figure: 'cpu', atMost: 1 }],
  },
  {
    name: 'full-plain',
    what: 'record log (synced), mapping, redaction, OTLP out : JSON file, persistent queue, OTLP out',
    collector: 'otelcol-full-plain',
    args: ['--parquet', 'off'],
    compression: 'none',
    parquet: false,
    limits: FULL,
  },
  {
    name: 'full-gzip',
    what: 'the same, OTLP out with gzip',
    collector: 'otelcol-full',
    args: ['--parquet', 'off'],
    compression: 'gzip',
    parquet: false,
    limits: FULL,
  },
  {
    name: 'parquet-plain',
    what: 'full-plain and Parquet : full-plain without',
    collector: 'otelcol-full-plain',
    args: PARQUET_ON,
    compression: 'none',
    parquet: true,
    limits: [{ figure: 'cpu', atMost: 0.8 }],
  },
  {
    name: 'parquet-gzip',
    what: 'full-gzip and Parquet : full-gzip without',
    collector: 'otelcol-full',
    args: PARQUET_ON,
    compression: 'gzip',
    parquet: true,
    limits: [{ figure: 'cpu', atMost: 0.8 }],
  },
];
