import { readFileSync } from 'node:fs';

/** Processes that are looked at; of more, the rest is left out. */
const MAX_PROCESSES = 500;

/** A process and everything that it has started, parents first, as /proc says: on Linux alone, elsewhere the process itself. */
export function processTree(root: number): readonly number[] {
  const found = [root];
  for (const pid of found) {
    if (found.length >= MAX_PROCESSES) break;
    found.push(...childrenOf(pid));
  }
  return found;
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}
