import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { TRIAL } from './trial.js';

/** As a trial on Linux: a process never had more memory than so much, in MiB. It depends on when garbage is collected, so no test holds it. */
export function expectPeakMemory(pid: number | undefined, maxMib: number): void {
  if (TRIAL.seconds === undefined || process.platform !== 'linux') return;
  const peakKb = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  expect(Number(peakKb) / 1024).toBeLessThan(maxMib);
}
