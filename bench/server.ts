import { join } from 'node:path';
import type { Line } from './lines.js';
import { peerProgram, WORK_FOLDER } from './peer-programs.js';
import { PORTS } from './ports.js';

/** A program under load: how it is started and where its files are. */
export interface Server {
  readonly name: 'run-bridge' | 'Collector';
  /** Environment variables beside those that are there. */
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  /** Removed before each start. */
  readonly folders: readonly string[];
  /** Globs of the files in which each span is counted, with spaces between them. */
  readonly output: string;
  /** How often a span's id stands in them. */
  readonly idsPerSpan: number;
}

/** run-bridge as it does a line's work. @param dist the folder of the built program */
export function bridgeServer(line: Pick<Line, 'args' | 'compression' | 'parquet'>, dist: string): Server {
  const data = join(WORK_FOLDER, 'run', 'bridge');
  const address = (port: number) => `127.0.0.1:${port}`;
  const serve = ['serve', '--http', address(PORTS.http), '--web', address(PORTS.web), '--data-dir', data, ...line.args];
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://${address(PORTS.sink)}`,
    OTEL_EXPORTER_OTLP_COMPRESSION: line.compression ?? 'none',
  };
  return {
    name: 'run-bridge',
    env: line.compression === undefined ? {} : env,
    command: [process.execPath, join(dist, 'main.js'), ...serve],
    folders: [data],
    // Parquet is watched as well, so that the run is over when it is written; no id is found in it.
    output: ['telemetry.jsonl', ...(line.parquet ? ['*.parquet'] : [])]
      .map((file) => join(data, 'runs/*', file))
      .join(' '),
    idsPerSpan: 2,
  };
}

/** The Collector as it does a line's work. */
export function collectorServer(line: Pick<Line, 'collector'>): Server {
  const run = join(WORK_FOLDER, 'run');
  return {
    name: 'Collector',
    env: {},
    command: [peerProgram('otelcol'), '--config', `test/tool/peers/conf/${line.collector}.yaml`],
    folders: [join(run, 'otelcol-out'), join(run, 'otelcol-q')],
    output: join(run, 'otelcol-out/*'),
    idsPerSpan: 1,
  };
}
