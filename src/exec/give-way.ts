import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { promisify } from 'node:util';
import type { Clock, Timer } from '../core/clock.js';
import { processTree } from '../core/process-tree.js';

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

/** How often it is looked whether this process waits for a processor, in seconds. */
const LOOK_S = 0.5;
/** How often in a turn, in seconds. */
const TURN_LOOK_S = 0.05;
/** All times of processors are in hundredths of a second, the unit of `stat` (proc(5)). It starves where it had less since the last look. */
const STARVING = 2;
/** A turn ends when this process has nothing more to do in so many looks. */
const CALM_LOOKS = 2;
/** Or when it has had so much, where there is more to do than that. */
const TURN = 30;
/** And so much in the first turn, in which it loads the code that brings records in. */
const FIRST_TURN = 150;
/** Or after so many looks, 2 s: where many wait for a processor, each has little of it. */
const MAX_TURN_LOOKS = 40;

/**
 * What a process under the idle policy cannot do for itself: with processors that are never idle it would not run for as
 * long as the command works, its records would come late and nobody could cancel the run. So a shell with the usual
 * policy looks whether it could run (`R`) and how long it has, with all threads; gives it that policy until it has done
 * what there is to do, for a short turn at most; and for good when the command has ended (a process that nobody has waited
 * for has no `exe`).
 */
const SCRIPT = `
look() {
  read -r stat < "/proc/$1/stat" || exit
  set -- \${stat##*) }
  state=$1 ran=$((\${12} + \${13}))
}
look "$1"; before=$ran; turn=${FIRST_TURN}
while sleep ${LOOK_S}; do
  [ -e "/proc/$2/exe" ] || exec chrt --all-tasks --other --pid 0 "$1"
  look "$1"
  if [ "$state" = R ] && [ "$((ran - before))" -lt ${STARVING} ]; then
    chrt --all-tasks --other --pid 0 "$1"
    before=$ran; looks=0; calm=0
    while [ "$((ran - before))" -lt "$turn" ] && [ "$looks" -lt ${MAX_TURN_LOOKS} ] && [ "$calm" -lt ${CALM_LOOKS} ]; do
      sleep ${TURN_LOOK_S}; looks=$((looks + 1)); look "$1"
      if [ "$state" = R ]; then calm=0; else calm=$((calm + 1)); fi
    done
    chrt --all-tasks --idle --pid 0 "$1"
    turn=${TURN}
  fi
  before=$ran
done`;

/** Short turns on processors that are never idle, while a command works. */
export class ShortTurns {
  /** To be called with the usual policy, which the shell inherits. @param commandPid the process that goes first */
  static begin(commandPid: number): ShortTurns {
    const args = ['-c', SCRIPT, 'sh', String(process.pid), String(commandPid)];
    // In a process group of its own, a terminal's Ctrl+C does not reach it.
    const shell = spawn('sh', args, { stdio: 'ignore', detached: true });
    shell.on('error', () => {});
    shell.unref();
    return new ShortTurns(shell);
  }

  private constructor(private readonly shell: ChildProcess) {}

  /** Resolves when nothing changes the policy any more. */
  async end(): Promise<void> {
    const { shell } = this;
    if (shell.pid === undefined || shell.exitCode !== null || shell.signalCode !== null) return;
    const ended = once(shell, 'exit');
    shell.ref();
    try {
      process.kill(-shell.pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
    await ended;
  }
}

/** How often the memory of a command is looked at, in milliseconds. */
const SAMPLE_MS = 250;
/** Clock ticks a second in /proc, on every Linux. */
const TICKS = 100;

/** What a command and everything that it starts take, read from /proc: on Linux alone. */
export class ProcessUsage {
  /** The most memory that its processes held together when they were looked at, in bytes; `undefined` where that cannot be told. */
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
