import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/environment.js';
import type { Clock } from '../core/clock.js';
import type { CommandExit } from './exit-code.js';

/** What commands see of the process; `src/main.ts` makes it, tests make their own. */
export interface ProcessContext {
  readonly environment: Environment;
  readonly workingDir: string;
  readonly homeDir: string;
  readonly tempDir: string;
  /** Process id. */
  readonly pid: number;
  /** Node's version, for example `20.20.2`. */
  readonly nodeVersion: string;
  /** Path of the Node that runs this. */
  readonly nodePath: string;
  /** Folder of the installed package, with `package.json` in it. */
  readonly packageDir: string;
  readonly stdin: Readable;
  /** Whether a person types into `stdin`. */
  readonly isStdinTerminal: boolean;
  /** Carries only what was asked for. */
  readonly stdout: Writable;
  /** Width of the terminal that shows `stdout`, in columns; `null` where none does. */
  readonly stdoutColumns: number | null;
  /** Carries start lines, the log, progress and errors. */
  readonly stderr: Writable;
  /** Whether a person watches `stderr`. */
  readonly isStderrTerminal: boolean;
  /** Addresses and names of this machine. */
  readonly ownHosts: readonly string[];
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /**
   * Passes signals and uncaught errors of the program to a command that must outlive them.
   * @returns a function to call when the exit code is final: nothing changes it afterwards.
   */
  takeOver(takeover: ProcessTakeover): (ending: CommandExit) => void;
}

/** A command that stands in for another program handles its signals, and does not end because of its own error. */
export interface ProcessTakeover {
  /** Called for each of these signals, in place of what they do otherwise. */
  readonly signals: readonly NodeJS.Signals[];
  onSignal(signal: NodeJS.Signals): void;
  /** Called for uncaught errors, instead of ending the process. */
  onFault(error: unknown): void;
}
