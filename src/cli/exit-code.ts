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
