import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';

/** How often it is looked whether this process waits for a processor, in seconds. */
const LOOK_S = 1.5;
/** How often in a turn, in seconds. */
const TURN_LOOK_S = 0.05;
/** All times of processors are in hundredths of a second, the unit of `stat` (proc(5)). It starves where it had less since the last look. */
const STARVING = 2;
/**
 * A turn ends when this process has had so much of a command that keeps all processors busy by itself, which is a hundredth
 * and a half of one at most. Where more wait for them, the command has only its share, and this process takes as much more.
 */
const TURN = 2;
/** Or after so many looks, 2 s: where many wait for a processor, each has little of it. */
const MAX_TURN_LOOKS = 40;

/**
 * What a process under the idle policy cannot do for itself: with processors that are never idle it would not run for as
 * long as the command works, its records would come late and nobody could cancel the run. So a shell with the usual
 * policy looks whether it could run (`R`) and how long it has, with all threads; gives it that policy for a short turn, as
 * the number of those that can run asks for (the fourth in `loadavg`); and for good when the command has ended (a process
 * that nobody has waited for has no `exe`).
 */
const SCRIPT = `
look() {
  read -r stat < "/proc/$1/stat" || exit
  set -- \${stat##*) }
  state=$1 ran=$((\${12} + \${13}))
}
look "$1"; before=$ran
while sleep ${LOOK_S}; do
  [ -e "/proc/$2/exe" ] || exec chrt --all-tasks --other --pid 0 "$1"
  look "$1"
  if [ "$state" = R ] && [ "$((ran - before))" -lt ${STARVING} ]; then
    read -r _ _ _ running _ < /proc/loadavg
    turn=$((${TURN} * \${running%/*} / ($3 + 1)))
    [ "$turn" -gt ${TURN} ] || turn=${TURN}
    chrt --all-tasks --other --pid 0 "$1"
    before=$ran; looks=0
    while [ "$((ran - before))" -lt "$turn" ] && [ "$looks" -lt ${MAX_TURN_LOOKS} ]; do
      sleep ${TURN_LOOK_S}; looks=$((looks + 1)); look "$1"
    done
    chrt --all-tasks --idle --pid 0 "$1"
  fi
  before=$ran
done`;

/** Short turns on processors that are never idle, while a command works. */
export class ShortTurns {
  /** To be called with the usual policy, which the shell inherits. @param commandPid the process that goes first */
  static begin(commandPid: number): ShortTurns {
    const args = ['-c', SCRIPT, 'sh', ...[process.pid, commandPid, availableParallelism()].map(String)];
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
