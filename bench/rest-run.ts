import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuTimeMs, residentMiB } from './measured-process.js';
import { peerEnvironment } from './peer-programs.js';
import type { Server } from './server.js';

const READY_WITHIN_MS = 30_000;
/** What is loaded behind the start, and the collections of garbage after it, are over by then. */
const SETTLE_MS = 20_000;

/** What a server takes that nobody sends anything to. */
export interface Rest {
  /** From its start until it answers at its OTLP port (run-bridge: that it is ready), in milliseconds. */
  readonly readyMs: number;
  /** Resident memory at the end, in MiB. */
  readonly memory: number;
  /** CPU time in milliseconds a second. */
  readonly cpuMsPerSecond: number;
}

/**
 * Starts a server on empty folders, lets it rest, and ends it.
 * @param readyUrl answers 200 (or, for the Collector, at all) once it is ready
 * @param restMs how long its CPU time is watched, after `SETTLE_MS` in which it settles; 0 to look at the start only
 */
export async function runRest(server: Server, readyUrl: string, restMs: number): Promise<Rest> {
  for (const folder of server.folders) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  const [program = '', ...args] = server.command;
  const start = process.hrtime.bigint();
  const child = spawn(program, args, { env: { ...peerEnvironment(), ...server.env }, stdio: 'ignore' });
  try {
    await answered(child, readyUrl);
    const readyMs = Number(process.hrtime.bigint() - start) / 1e6;
    if (restMs > 0) await sleep(SETTLE_MS);
    const pid = child.pid ?? 0;
    const before = cpuTimeMs(pid);
    await sleep(restMs);
    const cpuMsPerSecond = restMs === 0 ? Number.NaN : ((cpuTimeMs(pid) - before) / restMs) * 1000;
    return { readyMs, memory: residentMiB(pid), cpuMsPerSecond };
  } finally {
    await ended(child);
  }
}

async function answered(child: ChildProcess, url: string): Promise<void> {
  for (const end = Date.now() + READY_WITHIN_MS; Date.now() < end; await sleep(5)) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode} before it was ready`);
    const response = await fetch(url).catch(() => undefined);
    if (response !== undefined && response.status < 500) return;
  }
  throw new Error(`${child.spawnfile} did not answer at ${url}`);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exit;
}
