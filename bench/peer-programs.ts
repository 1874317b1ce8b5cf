import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { installIntoCache } from '../test/tool/cache-folder.js';
import { peersFolder } from '../test/tool/peer-process.js';
import { PORTS } from './ports.js';

/** Where the programs under measurement write; this process's own, so that nobody else's run is disturbed. */
export const WORK_FOLDER = join(tmpdir(), `run-bridge-bench-${process.pid}`);

/** Path of a program that `peers-up.sh` builds. */
export function peerProgram(name: 'bench' | 'load' | 'otelcol' | 'sink'): string {
  return join(WORK_FOLDER, 'bin', name);
}

/** What the Collector's configurations and the load generator are told. */
export function peerEnvironment(): Record<string, string | undefined> {
  return {
    ...process.env,
    PEERS: WORK_FOLDER,
    OTLP_HTTP_PORT: String(PORTS.http),
    OTLP_GRPC_PORT: String(PORTS.grpc),
    SINK_PORT: String(PORTS.sink),
  };
}

/**
 * Makes the work folder, which goes when this process ends, and builds the load generator, the sink and the Collector
 * where they are not yet: needs Go, minutes the first time.
 * @param isCompared whether the Collector is needed
 */
export function openPeers(isCompared = true): void {
  const bin = join(peersFolder(), 'bin');
  const has = (name: string) => existsSync(join(bin, name));
  const hasLoad = has('bench') && has('load') && has('sink');
  const parts = [...(hasLoad ? [] : ['load']), ...(has('otelcol') || !isCompared ? [] : ['collector'])];
  if (parts.length > 0) {
    console.log(`building ${parts.join(' and ')} in ${peersFolder()}`);
    installIntoCache(['bash', 'test/tool/peers/peers-up.sh', ...parts], { PEERS: peersFolder() });
  }
  mkdirSync(join(WORK_FOLDER, 'run'), { recursive: true });
  symlinkSync(resolve(bin), join(WORK_FOLDER, 'bin'));
  process.once('exit', () => rmSync(WORK_FOLDER, { recursive: true, force: true }));
}
