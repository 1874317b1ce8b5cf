import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** How often it is looked whether this process waits for a processor, in seconds. */
const LOOK_S = 2;
/** It gets a turn where it waits for one at a look and had less of them since the last look, in nanoseconds. */
const STARVING_NS = 50_000_000;
/** A turn ends when it has had a processor for so long, in nanoseconds: a twentieth of one, all in all, of those there are. */
const TURN_NS = 100_000_000;
/** Or after this many tenths of a second: where many wait for a processor, each has little of it. */
const MAX_TURN_TENTHS = 10;

/**
 * What a process under the idle policy cannot do for itself: with processors that are never idle it would not run for as
 * long as the command works, its records would come late and nobody could cancel the run. So a shell with the usual
 * policy looks whether it could run (`R` in `stat`, proc(5)) and how long it has (the first number of `schedstat`), gives it
 * that policy for a short turn, and for good when the command has ended (a process that nobody has waited for has no `exe`).
 */
const SCRIPT = `
before=0
while sleep ${LOOK_S}; do
  [ -e "/proc/$2/exe" ] || exec chrt --all-tasks --other --pid 0 "$1"
  read -r stat < "/proc/$1/stat" && read -r ran _ < "/proc/$1/schedstat" || exit
  case "$stat" in *") R "*)
    if [ "$((ran - before))" -lt ${STARVING_NS} ]; then
      chrt --all-tasks --other --pid 0 "$1"
      before=$ran; tenths=0
      while [ "$((ran - before))" -lt ${TURN_NS} ] && [ "$tenths" -lt ${MAX_TURN_TENTHS} ]; do
        sleep 0.1; tenths=$((tenths + 1)); read -r ran _ < "/proc/$1/schedstat" || exit
      done
      chrt --all-tasks --idle --pid 0 "$1"
    fi
  esac
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
