import { CliError } from './cli-error.js';
import { EXIT } from './exit-code.js';

/** Nothing answers at a bridge's address: it may not be there yet, or be starting again. */
export class UnreachableError extends CliError {
  constructor(message: string, options?: ErrorOptions) {
    super(EXIT.failed, message, options);
  }
}
