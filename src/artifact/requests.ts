import { ApiError } from '../api/api-error.js';
import type { Logger } from '../core/logger.js';
import { readableBytes } from '../core/text.js';
import { ArtifactError, type ArtifactPath, parseArtifactPath } from '../storage/artifacts.js';
import type { CatalogStep } from '../storage/run-catalog.js';

/**
 * Reads the path of an artifact from the router's parameter: the names after `artifacts/`, each decoded once. An encoded slash separates names like any other; a trailing one is optional. `undefined`
 * for an unsafe path.
 */
export function readArtifactParameter(value: unknown): ArtifactPath | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  return parseArtifactPath(names.map(String).join('/').replace(/\/$/, ''));
}

/**
 * Reads `?step=N`, from 1.
 * @returns `null` if it is missing
 * @throws ApiError 400
 */
export function readStepParameter(value: unknown): number | null {
  if (value === undefined || value === '') return null;
  if (typeof value === 'string' && /^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw new ApiError(400, 'step: must be a positive integer.');
}

/** Returns the step with an index, or the last one for `null`; `undefined` if there is none. */
export function findStep(steps: readonly CatalogStep[], index: number | null): CatalogStep | undefined {
  return index === null ? steps.at(-1) : steps.find((step) => step.index === index);
}

/** When to try again, in seconds. */
const RETRY_AFTER_S = '5';

/** Converts an `ArtifactError` to an API error and returns other errors unchanged. Logs errors that only the operator can fix. */
export function toArtifactApiError(error: unknown, logger: Logger): unknown {
  if (!(error instanceof ArtifactError)) return error;
  const { code, message } = error;
  switch (code) {
    case 'tooLarge':
    case 'tooMany':
      return new ApiError(413, sentence(message), {}, { cause: error });
    case 'conflict':
      return new ApiError(409, sentence(message), {}, { cause: error });
    case 'full':
      logger.error({ reason: message }, 'failed to store an artifact');
      return new ApiError(507, sentence(message), { 'Retry-After': RETRY_AFTER_S }, { cause: error });
    case 'refused':
    case 'unavailable':
      logger.error({ reason: message }, 'artifacts cannot be read or stored');
      return new ApiError(
        503,
        'Artifacts cannot be read or stored at the moment; see the log of run-bridge.',
        { 'Retry-After': RETRY_AFTER_S },
        { cause: error },
      );
  }
}

/** Returns the error for an artifact larger than allowed. */
export function tooLarge(maxBytes: number): ArtifactError {
  return new ArtifactError(
    'tooLarge',
    `an artifact may have ${readableBytes(maxBytes)}: --max-artifact-bytes allows more`,
  );
}

/** A message for the log as one for clients. */
export function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
