import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

const SAMPLE_MS = 10;

/** What a process took, from its start to its end. */
export interface Measured {
  readonly wallMs: number;
  /** User and system time of all its threads, as last seen before its end. */
  readonly cpuMs: number;
  /** The most memory that was resident (`VmHWM`), in MiB. */
  readonly peakMiB: number;
  readonly stdout: string;
}

/**
 * Runs Node with these arguments, and looks at `/proc` every 10 ms meanwhile (Linux only).
 * @throws Error with what it wrote to standard error when it fails
 */
export async function measureNode(args: readonly string[]): Promise<Measured> {
  const start = process.hrtime.bigint();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  let cpuMs = 0;
  let peakMiB = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const timer = setInterval(() => {
    if (child.pid === undefined) return;
    peakMiB = Math.max(peakMiB, residentPeakMiB(child.pid));
    cpuMs = Math.max(cpuMs, cpuTimeMs(child.pid));
  }, SAMPLE_MS);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).finally(() => clearInterval(timer));
  const wallMs = Number(process.hrtime.bigint() - start) / 1e6;
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}: ${stderr.slice(-2000)}`);
  return { wallMs, cpuMs, peakMiB, stdout };
}

/** `VmHWM` in MiB. */
function residentPeakMiB(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(procFile(pid, 'status'))?.[1] ?? 0) / 1024;
}

/** Resident memory of a process in MiB, 0 once it has gone. */
export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(procFile(pid, 'status'))?.[1] ?? 0) / 1024;
}

/** User and system time of a process in milliseconds, all threads, in steps of 10; 0 once it has gone. */
export function cpuTimeMs(pid: number): number {
  const fields = procFile(pid, 'stat').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
