/**
 * Why the book did not take it.
 * - `unknownStep`: nothing was said of this step's beginning.
 * - `refused`: something is wrong with what was said; saying it again does not help.
 * - `unavailable`: the book cannot be written or reached just now; it may be tried again.
 */
export type ExecutionBookErrorCode = 'unknownStep' | 'refused' | 'unavailable';

/** The book did not take what was said; the message is a line for the user. */
export class ExecutionBookError extends Error {
  override readonly name = 'ExecutionBookError';
  constructor(
    readonly code: ExecutionBookErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
