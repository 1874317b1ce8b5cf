import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuTimeMs, residentMiB } from './measured-process.js';

/** What a start took, and what the program takes afterwards. */
export interface Start {
  /** From the start of the process until it says where it listens, in milliseconds. */
  readonly readyMs: number;
  /** User and system time until then, in milliseconds. */
  readonly cpuMs: number;
  /** Resident memory at the end, in MiB. */
  readonly memory: number;
  /** User and system time in the time of rest, in milliseconds. */
  readonly restCpuMs: number;
}

/** How a start is made. */
export interface StartOptions {
  /** The folder of the built program. */
  readonly dist: string;
  readonly dataFolder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** How long it runs before it is looked at and ended, in milliseconds; the first second is not part of the rest. */
  readonly restMs: number;
}

/** Starts `serve` on free ports, leaves it alone, and ends it (Linux only). */
export async function measureStart(options: StartOptions): Promise<Start> {
  const { dist, dataFolder, env, restMs } = options;
  const address = '127.0.0.1:0';
  const args = [`${dist}/main.js`, 'serve', '--http', address, '--web', address, '--data-dir', dataFolder];
  const start = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', HOME: dataFolder, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  try {
    let stderr = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
        if (stderr.includes('now run')) resolve();
      });
      child.once('exit', (code) => reject(new Error(`run-bridge ended with ${code}: ${stderr}`)));
    });
    const pid = child.pid ?? 0;
    const readyMs = performance.now() - start;
    const cpuMs = cpuTimeMs(pid);
    await sleep(Math.min(restMs, 1_000));
    const before = cpuTimeMs(pid);
    await sleep(Math.max(0, restMs - 1_000));
    return { readyMs, cpuMs, memory: residentMiB(pid), restCpuMs: cpuTimeMs(pid) - before };
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}
