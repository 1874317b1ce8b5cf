import type { CommandEnding } from '../store/command-ending.js';

/** What became of a command, to stand after its name: `ended with exit code 1`. */
export function endingWords(ending: CommandEnding): string {
  switch (ending.kind) {
    case 'exited': {
      const signal = shellSignal(ending.exitCode);
      const hint = signal === null ? '' : ` (as a shell says of a command killed by ${signal})`;
      return `ended with exit code ${ending.exitCode}${hint}`;
    }
    case 'killed':
      return `was killed by ${ending.signal}`;
    case 'notStarted':
      return `could not be started${ending.reason === '' ? '' : ` (${ending.reason})`}`;
    case 'within':
      return 'ended inside a command that went on';
    case 'unknown':
      return 'ended, nobody knows how';
  }
}

/** The signal that killed a command, directly or below a shell; `null` where none did. */
export function killingSignal(ending: CommandEnding): string | null {
  if (ending.kind === 'killed') return ending.signal;
  return ending.kind === 'exited' ? shellSignal(ending.exitCode) : null;
}

/** Linux's numbers of the signals that end programs; a shell's exit code is 128 more. */
const SIGNALS: ReadonlyMap<number, string> = new Map([
  [1, 'SIGHUP'],
  [2, 'SIGINT'],
  [3, 'SIGQUIT'],
  [4, 'SIGILL'],
  [6, 'SIGABRT'],
  [7, 'SIGBUS'],
  [8, 'SIGFPE'],
  [9, 'SIGKILL'],
  [11, 'SIGSEGV'],
  [13, 'SIGPIPE'],
  [15, 'SIGTERM'],
]);

function shellSignal(exitCode: number): string | null {
  return SIGNALS.get(exitCode - 128) ?? null;
}
