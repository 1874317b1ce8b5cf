import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/environment.js';
import type { SettingKey } from '../config/settings.js';
import type { Clock } from '../core/clock.js';
import type { State } from '../storage/state.js';

/**
 * What the process ends with; part of the public interface, listed in README.
 * A second SIGINT or SIGTERM ends the process at once with 128 and the signal's number, as shells have it.
 */
export const EXIT = {
  /** Everything that was asked for was done. */
  ok: 0,
  /** It could not be done, or not all of it. */
  failed: 1,
  /** The command line or the configuration is wrong, or a port or folder cannot be used: nothing was started. */
  usage: 2,
  /** Done, but some records could not be read and were skipped. */
  unreadable: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The process is to end as a command that it stood in for did: with any code, or by a signal. */
export interface CommandExit {
  /** Where the signal does not end the process: 128 and the signal's number, as shells have it. */
  readonly exitCode: number;
  /** `null` for an exit. */
  readonly signal: NodeJS.Signals | null;
}

/** Ends a command; the message is one line for the user that says how to fix it. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
  constructor(
    readonly exitCode: ExitCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

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

/** Resolves when the user, or the system, asks the process to end. */
export async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // A signal alone does not keep a process alive; servers do, and this does where there is none.
  const alive = setInterval(() => {}, 2 ** 30);
  await once(stop, 'abort');
  clearInterval(alive);
}

/** What the parser hands to a command. */
export interface Invocation {
  readonly context: ProcessContext;
  /** Flags with a value, by their name without hyphens in front. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** Flags without a value that were given. */
  readonly switches: ReadonlySet<string>;
  readonly operands: readonly string[];
}

/** One command of the program. */
export interface CliCommand {
  readonly name: string;
  /** Its operands in the notation of help texts, for example `<PATH...>`; empty for none. */
  readonly operands: string;
  readonly summary: string;
  /** Settings that it takes as flags. */
  readonly settings: readonly SettingKey[];
  /** Its own flags, for example `['--to <URL>', 'send to a running bridge']`. */
  readonly flags: readonly (readonly [string, string])[];
  /** What the values of flags may be, by their names, for the completion of shells. */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  /** Lines of examples: a command and what it does. */
  readonly examples: readonly (readonly [string, string])[];
  /** Its operands are another command line: after the first one nothing is an option of ours. */
  readonly takesCommand?: boolean;
  run(invocation: Invocation): Promise<ExitCode | CommandExit>;
}

/** The flag of every command that has settings. */
export const CONFIG_FLAG = [
  '--config <FILE>',
  'configuration file (default: ./run-bridge.yaml, then the one in $XDG_CONFIG_HOME/run-bridge)',
] as const;

/**
 * Opens the state that a command line names, and closes it after `body`. Creates nothing: a mistyped folder stays missing.
 * @param noun the kind of data, for the error
 * @throws CliError, ConfigurationError, StoreError
 */
export type WithState = <T>(invocation: Invocation, noun: string, body: (state: State) => Promise<T>) => Promise<T>;

/** The value of `--account`; `null` where it is left out. @throws CliError */
export function readAccount(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--account: ${JSON.stringify(text)} is not the number of an account`);
}
