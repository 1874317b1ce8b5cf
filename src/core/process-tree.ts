import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink, realpath } from 'node:fs/promises';

/** The most processes that are examined. */
const MAX_PROCESSES = 500;

/** Returns a process and its descendants, parents first, from /proc; without /proc only the process itself. */
export function processTree(root: number): readonly number[] {
  const found = [root];
  for (const pid of found) {
    if (found.length >= MAX_PROCESSES) break;
    found.push(...childrenOf(pid));
  }
  return found;
}

/**
 * Whether another visible process has a file open for writing, from /proc; always false without /proc.
 * @param text considers only processes with this text in their environment
 */
export async function isWrittenByOthers(path: string, ownPid: number, text?: string): Promise<boolean> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return false;
  for (const pid of await otherProcesses(ownPid)) {
    if (text !== undefined && !(await isInEnvironment(pid, text))) continue;
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '');
      if (target === real && (await isForWriting(pid, descriptor))) return true;
    }
  }
  return false;
}

/**
 * Whether another visible process has a text in its environment, from /proc; always false without /proc.
 * @param isInSession considers only processes of this process's session: those that a shell leaves in the background, not services
 */
export async function isInheritedByOthers(
  text: string,
  ownPid: number,
  { isInSession = false }: { readonly isInSession?: boolean } = {},
): Promise<boolean> {
  const session = isInSession ? await sessionOf(String(ownPid)) : undefined;
  for (const pid of await otherProcesses(ownPid)) {
    if ((await isInEnvironment(pid, text)) && (session === undefined || (await sessionOf(pid)) === session))
      return true;
  }
  return false;
}

async function isInEnvironment(pid: string, text: string): Promise<boolean> {
  return (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(text);
}

/** Returns the session of a process. It is the sixth field of proc_pid_stat(5); the second is a name in brackets. */
async function sessionOf(pid: string): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[3];
}

async function otherProcesses(ownPid: number): Promise<readonly string[]> {
  const names = await readdir('/proc').catch(() => []);
  return names.filter((name) => /^\d+$/.test(name) && name !== String(ownPid));
}

/** Whether a descriptor is open for writing: the last two bits of the octal flags in proc_pid_fdinfo(5). */
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

/** Sends a signal to each of these processes; those that have ended are skipped. */
export function signalProcesses(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended.
    }
  }
}
