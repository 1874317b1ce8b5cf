import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, installIntoCache } from './cache-folder.js';
import { canConnect } from './can-connect.js';
import { until } from './until.js';

/** Programs that run-bridge is tested with, and what `peers-up.sh` calls each: built from Go modules (Kafka: brought by Maven) once into the cache, minutes the first time. */
export const PEERS = {
  deployment: 'deployment',
  jaeger: 'jaeger',
  kafka: 'kafka',
  kustomize: 'kustomize',
  otelcol: 'collector',
  prometheus: 'prometheus',
  telemetrygen: 'telemetrygen',
  versitygw: 'versitygw',
} as const;
export type Peer = keyof typeof PEERS;

/** Where the peers are built and write. */
export function peersFolder(): string {
  return process.env.PEERS ?? join(cacheFolder(), 'peers');
}

/** Builds a peer where it is not yet. */
export function buildPeer(peer: Peer): void {
  installIntoCache(['bash', 'test/tool/peers/peers-up.sh', PEERS[peer]], { PEERS: peersFolder() });
}

/** Runs a peer that ends by itself. @returns what it said. @throws Error when it fails. */
export function runPeer(peer: Peer, args: readonly string[]): string {
  return execFileSync(join(peersFolder(), 'bin', peer), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** A peer that runs, with a configuration of test/peers/conf or test/tool/peers/conf or with arguments. */
export class PeerProcess {
  /** Starts it with a configuration, and waits until `port` answers on the loopback address. */
  static start(peer: Peer, config: string, port: number, env: Readonly<Record<string, string>>): Promise<PeerProcess> {
    return PeerProcess.startWith(peer, ['--config', config], port, env);
  }

  /** The same with arguments of one's own. */
  static async startWith(
    peer: Peer,
    args: readonly string[],
    port: number,
    env: Readonly<Record<string, string>>,
  ): Promise<PeerProcess> {
    mkdirSync(join(peersFolder(), 'run'), { recursive: true });
    const child = spawn(join(peersFolder(), 'bin', peer), args, {
      env: { ...process.env, PEERS: peersFolder(), ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    await until(`${peer} on port ${port}`, () => {
      if (child.exitCode !== null) throw new Error(`${peer} ended with ${child.exitCode}: ${stderr}`);
      return canConnect(port);
    });
    return new PeerProcess(child);
  }

  private constructor(private readonly child: ChildProcess) {}

  /** Ends it and waits until it has gone. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }
}
