import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { promisify } from 'node:util';
import { ShortTurns } from './short-turns.js';

/** How nice this process is while the command works, where it cannot leave it processors altogether. */
const NICENESS = 15;

/** Takes the old priority again, where the system allows that: it does to root, and to few others. */
export type TakeBack = () => Promise<void>;

/**
 * Lets the command go first, which keeps the priority that it was started with; most of what is to be done here waits for
 * idle processors, and for the command's end. On Linux that is its idle policy (sched(7)), since a nice process still
 * keeps the command's threads from spreading over all processors, with a short turn now and then where none is ever idle;
 * elsewhere, and where there would be no way back to the usual policy, it is niceness.
 * @param commandPid the command's process
 */
export async function giveWay(commandPid: number): Promise<TakeBack> {
  const before = getPriority();
  if (before >= NICENESS) return async () => {};
  if (canTakeBack(before)) {
    const turns = ShortTurns.begin(commandPid);
    const isIdle = await setPolicy('--idle');
    if (isIdle) {
      return async () => {
        await turns.end();
        await setPolicy('--other');
      };
    }
    await turns.end();
  }
  setNiceness(NICENESS);
  return async () => setNiceness(before);
}

/** Tried on this thread alone, which ends up nice in either case. */
function canTakeBack(niceness: number): boolean {
  try {
    setPriority(NICENESS);
    setPriority(niceness);
    return true;
  } catch {
    return false;
  }
}

/** Of all threads; new ones inherit it. @returns whether it could be done: util-linux may be missing. */
async function setPolicy(policy: '--idle' | '--other'): Promise<boolean> {
  try {
    await promisify(execFile)('chrt', ['--all-tasks', policy, '--pid', '0', String(process.pid)]);
    return true;
  } catch {
    return false;
  }
}

/** On Linux each thread has a niceness of its own, which new ones inherit (setpriority(2)); elsewhere the process has one. */
function setNiceness(niceness: number): void {
  try {
    for (const thread of threadIds()) setPriority(thread, niceness);
  } catch {
    // Then both get what the system gives them.
  }
}

function threadIds(): readonly number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [0];
  }
}
