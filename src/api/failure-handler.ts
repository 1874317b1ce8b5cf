import type { ErrorRequestHandler, Request, Response } from 'express';
import type { Logger } from '../component/logger.js';
import type { ApiError } from './api-error.js';
import { toApiError } from './to-api-error.js';

/**
 * Turns whatever a router throws into an answer; mounted after the routers. What is no fault of the request is logged.
 * @param answer gives it, with the error's status and headers
 */
export function failureHandler(
  logger: Logger,
  answer: (error: ApiError, request: Request, response: Response) => void | Promise<void>,
): ErrorRequestHandler {
  return async (error: unknown, request, response, next) => {
    if (response.headersSent) {
      // Express then cuts off the answer that has begun.
      next(error);
      return;
    }
    const failure = toApiError(error);
    if (failure.status >= 500) {
      logger.error({ stack: error instanceof Error ? error.stack : String(error) }, 'request failed');
    }
    await answer(failure, request, response);
  };
}
