/** Why a file cannot be converted. */
export type ConvertErrorCode = 'sameFile' | 'unwritable';

/** A file cannot be converted; the message says what to do. Trouble with the file that is read is a `SourceError`. */
export class ConvertError extends Error {
  override readonly name = 'ConvertError';
  constructor(
    readonly code: ConvertErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
