/**
 * Why the state could not be read or written.
 * - `locked`: another program has locked the database; temporary.
 * - `unreachable`: the database's server cannot be reached, or the connection was lost; temporary.
 * - `refused`: the server refuses this program: wrong user, password or database, or it is too old.
 * - `readOnly`: the file, its folder or the database is not writable.
 * - `full`: the disk is full.
 * - `corrupt`: the file is damaged or not a database.
 * - `newer`: written by a newer version of the program.
 * - `unstorable`: the value can never be stored: a number or a text is too large. The database is fine.
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
