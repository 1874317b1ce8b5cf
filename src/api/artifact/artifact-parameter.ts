import { type ArtifactPath, parseArtifactPath } from '../../store/artifact/artifact-path.js';

/**
 * An artifact's path as the router gives it: the names behind `artifacts/`, each decoded once. A slash that was encoded
 * separates names like any other; a last one may be there or not. `undefined` for what is no safe path.
 */
export function readArtifactParameter(value: unknown): ArtifactPath | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return parseArtifactPath(names.map(String).join('/').replace(/\/$/, ''));
}
