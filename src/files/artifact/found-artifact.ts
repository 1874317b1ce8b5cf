import type { ArtifactPath } from '../../storage/artifact/artifact-store.js';

/** A file that is to become an artifact of a step. */
export interface FoundArtifact {
  /** Its path as an artifact. */
  readonly path: ArtifactPath;
  /** Where it lies. */
  readonly file: string;
  readonly sizeBytes: number;
}
