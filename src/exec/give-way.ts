import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Clock, Timer } from '../core/clock.js';
import { processTree } from '../core/process-tree.js';

/** How much nicer than the command this process is while that works, and the highest niceness that there is. */
const NICER = 10;
const MAX_NICENESS = 19;

/**
 * Gives the command, which keeps the niceness that it was started with, priority over this process.
 * @returns undoes it, where the system allows that: it does to root, and to few others
 */
export function giveWay(): () => void {
  const before = getPriority();
  setNiceness(Math.min(before + NICER, MAX_NICENESS));
  return () => setNiceness(before);
}

/** On Linux each thread has a niceness of its own, which new ones inherit (setpriority(2)); elsewhere the process has one. */
function setNiceness(niceness: number): void {
  try {
    for (const thread of threadIds()) setPriority(thread, niceness);
  } catch {
    // The niceness stays as it is.
  }
}

function threadIds(): readonly number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [0];
  }
}

/** How often the memory of a command is looked at, in milliseconds. */
const SAMPLE_MS = 250;
/** Clock ticks a second in /proc, on every Linux. */
const TICKS = 100;

/** What a command and everything that it starts take, read from /proc: on Linux alone. */
export class ProcessUsage {
  /** The most memory that its processes held together when they were looked at, in bytes; `undefined` if that is unknown. */
  peakMemoryBytes: number | undefined;
  private timer: Timer | undefined;

  constructor(
    private readonly pid: number,
    private readonly clock: Clock,
  ) {
    this.sample();
  }

  stop(): void {
    this.timer?.cancel();
  }

  private sample(): void {
    try {
      let bytes = 0;
      for (const pid of processTree(this.pid)) bytes += residentBytes(pid);
      if (bytes > 0) this.peakMemoryBytes = Math.max(this.peakMemoryBytes ?? 0, bytes);
    } catch {
      // It has just ended, or there is no /proc.
    }
    this.timer = this.clock.after(SAMPLE_MS, () => this.sample());
  }
}

/** CPU time of all children that have ended, and theirs, in seconds; `undefined` where there is no /proc. */
export function endedChildrenCpuSeconds(): number | undefined {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // proc_pid_stat(5): cutime and cstime are the 16th and 17th field, of which two stand before the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[13]) + Number(fields[14]);
    return Number.isFinite(ticks) ? ticks / TICKS : undefined;
  } catch {
    return undefined;
  }
}

function residentBytes(pid: number): number {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kibibytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
