/**
 * Why an artifact could not be read or kept.
 * - `full`: the disk or the bucket's quota is used up.
 * - `tooLarge`: it is larger than artifacts may be.
 * - `tooMany`: the step has as many artifacts, or as many bytes of them, as it may have.
 * - `conflict`: its name is that of a folder of other artifacts, or the other way round.
 * - `refused`: asking again will not help: no permission, or no such bucket.
 * - `unavailable`: the storage does not answer, or fails; it may be tried again.
 */
export type ArtifactErrorCode = 'full' | 'tooLarge' | 'tooMany' | 'conflict' | 'refused' | 'unavailable';

/** An artifact could not be read or kept. The message says where and what to do. */
export class ArtifactError extends Error {
  override readonly name = 'ArtifactError';
  constructor(
    readonly code: ArtifactErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
