import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

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

/** The most memory of a process that was resident (`VmHWM`), in MiB; 0 once it has gone. */
export function residentPeakMiB(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(procFile(pid, 'status'))?.[1] ?? 0) / 1024;
}

/** Resident memory of a process in MiB, 0 once it has gone. */
export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(procFile(pid, 'status'))?.[1] ?? 0) / 1024;
}

/** User and system time of a process in milliseconds, all threads, in steps of 10; 0 once it has gone. */
export function cpuTimeMs(pid: number): number {
  return userAndSystemMs(procFile(pid, 'stat'));
}

/** The same of its first thread alone, which runs JavaScript's event loop. */
export function mainThreadCpuTimeMs(pid: number): number {
  return userAndSystemMs(procFile(pid, `task/${pid}/stat`));
}

/** The same of a process and those that it has started, which may have ended. */
export function familyCpuTimeMs(pid: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const children = pids.filter((name) => Number(statFields(procFile(Number(name), 'stat'))[1]) === pid);
  const ended = statFields(procFile(pid, 'stat'));
  const endedMs = (Number(ended[13] ?? 0) + Number(ended[14] ?? 0)) * 10;
  return children.reduce((sum, child) => sum + cpuTimeMs(Number(child)), cpuTimeMs(pid) + endedMs);
}

function userAndSystemMs(stat: string): number {
  const fields = statFields(stat);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

/** What stands behind the name: the state is first, the parent second. */
function statFields(stat: string): readonly string[] {
  return stat.split(') ').at(-1)?.split(' ') ?? [];
}

function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
