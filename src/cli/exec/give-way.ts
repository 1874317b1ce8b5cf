import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** How nice this process is while the command works: of processors that both want it gets some 3 %. */
const NICENESS = 15;

/**
 * Lets the command go first, which keeps the priority that it was started with; most of what is to be done here waits for
 * idle processors, and for the command's end.
 * @returns takes the old priority again, where the system allows that: it does to root, and to few others.
 */
export function giveWay(): () => void {
  const before = getPriority();
  if (before >= NICENESS) return () => {};
  setNiceness(NICENESS);
  return () => setNiceness(before);
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
