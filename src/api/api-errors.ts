import type { ErrorRequestHandler } from 'express';
import type { Logger } from '../component/logger.js';
import { failure } from './envelope.js';
import { toApiError } from './to-api-error.js';

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
