import { readdirSync, readFileSync } from 'node:fs';

/** What a process holds at a moment, as Linux tells it. */
export interface ProcessSample {
  readonly rssMiB: number;
  readonly descriptors: number;
  /** User and system time so far, in milliseconds. */
  readonly cpuMs: number;
}

/** Linux counts CPU time in hundredths of a second. */
const MS_PER_TICK = 10;

/** Looks into `/proc`. @throws Error when there is no such process, or no `/proc`. */
export function sampleProcess(pid: number): ProcessSample {
  const rssKiB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  // After the name, which may hold anything: the 12th and 13th of the fields that follow.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return {
    rssMiB: rssKiB / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    cpuMs: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK,
  };
}
