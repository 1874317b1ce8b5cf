/**
 * Why an artifact could not be read or stored.
 * - `full`: the disk or the bucket's quota is used up.
 * - `tooLarge`: it exceeds the maximum size of an artifact.
 * - `tooMany`: the step has reached its maximum number of artifacts, or their maximum total size.
 * - `conflict`: its name is that of a folder of other artifacts, or the other way round.
 * - `refused`: repeating the request will not help: no permission, or no such bucket.
 * - `unavailable`: the storage does not answer, or fails; the request can be repeated.
 */
export type ArtifactErrorCode = 'full' | 'tooLarge' | 'tooMany' | 'conflict' | 'refused' | 'unavailable';

/** An artifact could not be read or stored. The message names the place and says how to fix it. */
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
