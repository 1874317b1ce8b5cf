import type { ExitCode } from './exit-code.js';

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
