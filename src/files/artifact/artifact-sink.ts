import type { ArtifactKey } from '../../storage/artifact/artifact-store.js';

/** Where artifacts of steps are brought to: a store of this process's own, or a bridge that runs. */
export interface ArtifactSink {
  /**
   * Keeps a file as an artifact, whole or not at all.
   * @param file its path; a symbolic link is not followed
   * @throws ArtifactError; what `signal` aborts with
   */
  put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void>;
}
