import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';

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

/** Whether another process that can be looked at has a file open for writing, as /proc says: on Linux alone, elsewhere never. */
export async function isWrittenByOthers(path: string, ownPid: number): Promise<boolean> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return false;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name) && name !== String(ownPid));
  for (const pid of pids) {
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '');
      if (target === real && (await isForWriting(pid, descriptor))) return true;
    }
  }
  return false;
}

/** proc_pid_fdinfo(5): the access mode is in the last two bits of the flags, which are octal. */
async function isForWriting(pid: string, descriptor: string): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8').catch(() => '');
  const flags = /^flags:\s+([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0;
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}
