import type { Logger } from '../../component/logger.js';
import { readableBytes } from '../../component/readable-bytes.js';
import { ArtifactError } from '../../store/artifact/artifact-error.js';
import { ApiError } from '../api-error.js';

/** When to try again, in seconds. */
const RETRY_AFTER_S = '5';

/** What an `ArtifactError` is to whoever asks; anything else as it is. What only the operator can put right is logged. */
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
      logger.error({ reason: message }, 'an artifact could not be kept');
      return new ApiError(507, sentence(message), { 'Retry-After': RETRY_AFTER_S }, { cause: error });
    case 'refused':
    case 'unavailable':
      logger.error({ reason: message }, 'artifacts cannot be read or kept');
      return new ApiError(
        503,
        'Artifacts cannot be read or kept just now; the log of run-bridge says why.',
        { 'Retry-After': RETRY_AFTER_S },
        { cause: error },
      );
  }
}

/** One that is larger than artifacts may be. */
export function tooLarge(maxBytes: number): ArtifactError {
  return new ArtifactError(
    'tooLarge',
    `an artifact may have ${readableBytes(maxBytes)}: --max-artifact-bytes allows more`,
  );
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
