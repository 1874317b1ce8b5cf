/**
 * Why the state could not be read or written.
 * - `locked`: another program holds the database; passes.
 * - `readOnly`: the file or its folder cannot be written.
 * - `full`: the disk is full.
 * - `corrupt`: the file is damaged or no database.
 * - `newer`: a newer version of the program has written it.
 * - `unavailable`: anything else.
 */
export type StoreErrorCode = 'locked' | 'readOnly' | 'full' | 'corrupt' | 'newer' | 'unavailable';

/** The state could not be read or written. The message names the file and what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  constructor(
    readonly code: StoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
