/**
 * Why the state could not be read or written.
 * - `locked`: another program holds the database; passes.
 * - `unreachable`: the database's server is not there, or the connection was lost; passes.
 * - `refused`: the server does not serve this program: wrong user, password or database, or it is too old.
 * - `readOnly`: the file, its folder or the database cannot be written.
 * - `full`: the disk is full.
 * - `corrupt`: the file is damaged or no database.
 * - `newer`: a newer version of the program has written it.
 * - `unstorable`: what was to be written can never be kept: a number or a text is too large. Nothing is wrong with the database.
 * - `unavailable`: anything else.
 */
export type StoreErrorCode =
  | 'locked'
  | 'unreachable'
  | 'refused'
  | 'readOnly'
  | 'full'
  | 'corrupt'
  | 'newer'
  | 'unstorable'
  | 'unavailable';

/** The state could not be read or written. The message names the file or the server, and what to do. */
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
