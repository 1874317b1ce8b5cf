import type { VictimCommand } from './victim.js';

/** The built program as a victim. */
export interface BridgeVictimOptions {
  readonly dataFolder: string;
  readonly httpPort: number;
  readonly webPort: number;
  readonly sinkPort: number;
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
  /** Arguments of Node. */
  readonly nodeArgs?: readonly string[];
}

/** `run-bridge serve` with a destination; the program is in `dist` unless `CRASH_MAIN` names another build's `main.js`. */
export function bridgeVictim(options: BridgeVictimOptions): VictimCommand {
  const main = process.env.CRASH_MAIN ?? 'dist/main.js';
  const addresses = ['--http', `127.0.0.1:${options.httpPort}`, '--web', `127.0.0.1:${options.webPort}`];
  const serve = ['serve', ...addresses, '--grpc', 'off', '--data-dir', options.dataFolder, '--log-level', 'warn'];
  return {
    name: 'run-bridge',
    command: process.execPath,
    args: [...(options.nodeArgs ?? []), main, ...serve, ...(options.args ?? [])],
    env: { HOME: options.dataFolder, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${options.sinkPort}` },
    port: options.httpPort,
  };
}
