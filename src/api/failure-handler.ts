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
  // Express tells by the number of parameters what handles errors.
  return async (error: unknown, request, response, _next) => {
    // Whoever gave up meanwhile is nobody to answer, and no fault of this program.
    if (response.destroyed) return;
    if (response.headersSent) {
      // Its client sees that it is not whole.
      response.destroy();
      logger.error({ stack: stackOf(error) }, 'an answer that had begun was cut off');
      return;
    }
    const failure = toApiError(error);
    if (failure.status >= 500) {
      logger.error({ stack: stackOf(error) }, 'request failed');
    }
    await answer(failure, request, response);
  };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
