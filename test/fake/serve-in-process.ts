import { PassThrough } from 'node:stream';
import { until } from '../tool/until.js';
import { runInProcess } from './run-in-process.js';

/** A `run-bridge serve` in this process. */
export interface ServedInProcess {
  readonly otlpUrl: string;
  readonly webUrl: string;
  /** Ends it as Ctrl+C does. */
  stop(): Promise<void>;
}

/** Starts `run-bridge serve` in this process on free ports; resolves when it listens. @param dir its home */
export async function serveInProcess(args: readonly string[], dir: string): Promise<ServedInProcess> {
  const stop = new AbortController();
  const stderr = new PassThrough();
  let text = '';
  stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ports = ['--http', '127.0.0.1:0', '--grpc', 'off', '--web', '127.0.0.1:0'];
  const running = runInProcess(['serve', ...ports, ...args], dir, { stop: stop.signal, stderr });
  await until('the start lines', () => /now run/.test(text));
  const find = (pattern: RegExp) => {
    const found = pattern.exec(text)?.[1];
    if (found === undefined) throw new Error(`not in the start lines: ${pattern} in ${text}`);
    return found;
  };
  return {
    otlpUrl: find(/OTLP over HTTP at (http:\S+)/),
    webUrl: find(/(http:\S+)\/readyz/),
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}
