import { join } from 'node:path';
import { peerProgram, WORK_FOLDER } from './peer-programs.js';
import { PORTS } from './ports.js';

/** A program under load: how it is started and where its files are. */
export interface Server {
  readonly name: string;
  /** Environment variables beside those that are there. */
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  /** Removed before each start. */
  readonly folders: readonly string[];
  /** Globs of the files in which each span is counted, with spaces between them; no work is over while one of them grows. */
  readonly output: string;
  /** Its record logs stand here; the Collector has none. */
  readonly dataFolder?: string;
}

/**
 * Runs without an invocation span, as the made-up ones are, end by silence: short enough to see the Parquet written,
 * longer than any pause of the load.
 */
const SILENCE = ['--invocation-silence', '2s'];

/** run-bridge: record log (synced), run model, verdicts, mapping, redaction, OTLP out without compression. @param dist the folder of the built program */
export function bridgeServer(dist: string, parquet: 'on' | 'off', flags: readonly string[] = SILENCE): Server {
  const dataFolder = join(WORK_FOLDER, 'run', 'bridge');
  const address = (port: number) => `127.0.0.1:${port}`;
  const serve = ['serve', '--http', address(PORTS.http), '--web', address(PORTS.web), '--data-dir', dataFolder];
  return {
    name: parquet === 'on' ? 'run-bridge, Parquet' : 'run-bridge',
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${address(PORTS.sink)}`,
      OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
    },
    command: [process.execPath, join(dist, 'main.js'), ...serve, '--parquet', parquet, ...flags],
    folders: [dataFolder],
    // Parquet is watched as well, so that the work is over when it is written; no id is found in it.
    output: ['telemetry.jsonl', ...(parquet === 'on' ? ['*.parquet'] : [])]
      .map((file) => join(dataFolder, 'runs/*', file))
      .join(' '),
    dataFolder,
  };
}

/** The Collector: JSON file, persistent queue, OTLP out without compression. @param isSynced whether its queue is synced, as run-bridge's record log is */
export function collectorServer(isSynced: boolean): Server {
  const run = join(WORK_FOLDER, 'run');
  const configuration = isSynced ? 'otelcol-full-real-synced' : 'otelcol-full-real';
  return {
    name: isSynced ? 'Collector, synced' : 'Collector',
    env: {},
    command: [peerProgram('otelcol'), '--config', `test/tool/peers/conf/${configuration}.yaml`],
    folders: [join(run, 'otelcol-out'), join(run, 'otelcol-q')],
    output: join(run, 'otelcol-out/*'),
  };
}
