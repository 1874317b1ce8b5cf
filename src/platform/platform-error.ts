/**
 * Why something could not be had of a hosted platform.
 * - `unauthorized`: the token is missing, wrong, or may not see the account.
 * - `notFound`: the account or the run is not there.
 * - `unavailable`: no answer, or none that helps, after several attempts; passes.
 * - `refused`: an answer that asking again would not change.
 * - `malformed`: what was answered is not the platform's API.
 * - `tooLarge`: more than the limit.
 * - `disk`: a downloaded file could not be written.
 */
export type PlatformErrorCode =
  | 'unauthorized'
  | 'notFound'
  | 'unavailable'
  | 'refused'
  | 'malformed'
  | 'tooLarge'
  | 'disk';

/** Something could not be had of a hosted platform; the message says what to do and never holds the token. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  constructor(
    readonly code: PlatformErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
