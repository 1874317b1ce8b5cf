import type { ErrorRequestHandler } from 'express';
import type { Logger } from '../component/logger.js';
import { StoreError } from '../store/store-error.js';
import { ApiError } from './api-error.js';
import { failure } from './envelope.js';

/** Turns whatever a router throws into an answer in the envelope; mounted after the routers. */
export function apiErrors(logger: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) {
      // Express then cuts off the answer that has begun.
      next(error);
      return;
    }
    const { status, userMessage, headers } = toApiError(error);
    if (status >= 500) {
      logger.error({ stack: error instanceof Error ? error.stack : String(error) }, 'request failed');
    }
    response.status(status).set(headers).json(failure(status, userMessage));
  };
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
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
