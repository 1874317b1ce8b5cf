import { StoreError } from '../store/store-error.js';
import { ApiError } from './api-error.js';

/** What a request is answered with, whatever was thrown: details of what is 500 or 503 are for the log alone. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StoreError && error.code === 'unstorable') {
    return new ApiError(400, 'The request has a value that cannot be kept: a number or a text is too large.');
  }
  if (error instanceof StoreError) {
    return new ApiError(503, 'The state cannot be read or written just now; the log of run-bridge says why.', {
      'Retry-After': '1',
    });
  }
  // Express's own, about a path or a body that it cannot read.
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new ApiError(status, `The request cannot be read: ${error instanceof Error ? error.message : status}.`);
  }
  return new ApiError(500, 'run-bridge failed on this request; its log says why.');
}
