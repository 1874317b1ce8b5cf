import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import type { CommandExit } from '../cli/command.js';
import type { Environment } from '../config/environment.js';
import type { Clock, Timer } from '../core/clock.js';
import { errorCode } from '../core/errors.js';
import { fileMask } from '../core/file-mask.js';
import { processTree } from '../core/process-tree.js';
import type { ChildEnding } from './command-facts.js';

/** A command that runs on the standard input, output and error of this process, in its process group. */
export interface ChildProcess {
  /** `undefined` where it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<ChildEnding>;
  /** Sends it a signal; does nothing once it has ended. */
  signal(signal: NodeJS.Signals): void;
}

/**
 * Starts a command as a shell would: found on the environment's PATH, a script without an interpreter line run by `sh`.
 * It inherits the descriptors themselves, so a terminal stays a terminal, and stays in the process group, so the terminal's
 * job control goes on to work.
 * @param extraDescriptors descriptors beyond standard error that it inherits, too
 */
export function startChild(
  [program = '', ...args]: readonly string[],
  environment: Environment,
  extraDescriptors: readonly number[] = [],
): ChildProcess {
  let child: ReturnType<typeof spawn>;
  try {
    child = fileMask.asCaller(() => spawn(program, args, { stdio: stdioOf(extraDescriptors), env: environment }));
  } catch (error) {
    // What the system refuses before it even looks: an argument list that is too long, for example.
    return { pid: undefined, ended: Promise.resolve(notStarted(program, error)), signal() {} };
  }
  const ended = new Promise<ChildEnding>((resolve) => {
    // Also each signal that may not be sent, to a program of another user for example, is such an event.
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(notStarted(program, error));
    });
    child.once('exit', (exitCode, signal) => {
      resolve(signal === null ? { kind: 'exited', exitCode: exitCode ?? 0 } : { kind: 'killed', signal });
    });
  });
  // Node 20 sends it to the process group of this one until it reports that no more files could be opened for a child.
  return { pid: child.pid, ended, signal: (signal) => void (child.pid !== undefined && child.kill(signal)) };
}

function stdioOf(extraDescriptors: readonly number[]): ('inherit' | 'ignore' | number | null)[] {
  const stdio: ('inherit' | 'ignore' | number | null)[] = ['inherit', 'inherit', 'inherit'];
  for (const descriptor of extraDescriptors) stdio[descriptor] = descriptor;
  return stdio;
}

function notStarted(program: string, error: unknown): ChildEnding {
  const code = errorCode(error);
  if (code === 'ENOENT') return { kind: 'notStarted', exitCode: 127, reason: `${program}: command not found` };
  const reason = code === 'EACCES' ? 'permission denied; is it an executable file?' : (code ?? String(error));
  return { kind: 'notStarted', exitCode: 126, reason: `${program}: cannot be run: ${reason}` };
}

/** What the caller sees of a command that ended. */
export function exitOf(ending: ChildEnding): CommandExit {
  if (ending.kind !== 'killed') return { exitCode: ending.exitCode, signal: null };
  return { exitCode: signalStatus(ending.signal), signal: DEADLY.has(ending.signal) ? ending.signal : null };
}

/**
 * Signals by which this process ends, too, so that the caller sees just what it would have seen: a shell that ran the
 * command knows by SIGINT that it is to stop its script. Those that dump core end in 128 and their number: a dump of this
 * process would help nobody.
 */
const DEADLY: ReadonlySet<NodeJS.Signals> = new Set(['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGKILL', 'SIGPIPE', 'SIGALRM']);

/** The exit status that shells report for a command that a signal killed: 128 and the signal's number. */
export function signalStatus(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** What a stand-in is sent and hands on to the command. SIGKILL and SIGSTOP cannot be; Ctrl+Z stops the whole group as it is. */
export const FORWARDED_SIGNALS: readonly NodeJS.Signals[] = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGUSR1',
  'SIGUSR2',
];

/** Those that a terminal sends at a key, to all of its foreground. */
const KEYBOARD_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

/**
 * Whether a signal is to be handed on. In a terminal's foreground Ctrl+C has reached the command already, as it is in the
 * same process group; an engine that gets it twice takes the second as "at once" and cleans up nothing.
 */
export function isForwarded(signal: NodeJS.Signals, isInForeground: () => boolean): boolean {
  return !(KEYBOARD_SIGNALS.has(signal) && isInForeground());
}

/**
 * Whether this process belongs to the foreground of its terminal, whose Ctrl+C and Ctrl+\\ reach the whole process group.
 * @param hasTerminal what to answer where there is no /proc: whether a standard stream is a terminal.
 */
export function isInTerminalForeground(hasTerminal: boolean): boolean {
  try {
    return parseStat(readFileSync('/proc/self/stat', 'utf8'));
  } catch {
    return hasTerminal;
  }
}

/** proc_pid_stat(5): pid (comm) state ppid pgrp session tty_nr tpgid …; the name may hold blanks and parentheses. */
function parseStat(stat: string): boolean {
  const [, , groupId, , terminal, foregroundGroupId] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal !== '0' && groupId === foregroundGroupId;
}

/** How much nicer than the command this process is while that works, and the highest niceness that there is. */
const NICER = 10;
const MAX_NICENESS = 19;

/**
 * Gives the command, which keeps the niceness that it was started with, priority over this process.
 * @returns undoes it, where the system allows that: it does to root, and to few others
 */
export function deferToCommand(): () => void {
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
