import type { ErrorRequestHandler, Request, Response } from 'express';
import type { Logger } from '../core/logger.js';
import { StoreError } from '../storage/store-error.js';
import { ApiError } from './api-error.js';

/**
 * Maps every error of a router to a response; mounted after the routers. Errors that are not the client's fault are logged.
 * @param answer sends the response, with the error's status and headers
 */
export function failureHandler(
  logger: Logger,
  answer: (error: ApiError, request: Request, response: Response) => void | Promise<void>,
): ErrorRequestHandler {
  // Express recognises error handlers by the number of parameters.
  return async (error: unknown, request, response, _next) => {
    // If the client has gone there is nobody to answer, and no error of this program.
    if (response.destroyed) return;
    if (response.headersSent) {
      // Its client sees that it is not whole.
      response.destroy();
      logger.error({ stack: stackOf(error) }, 'closed a connection in the middle of a response');
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

/** Returns the response to any error: details of a 500 or 503 are only logged. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StoreError && error.code === 'unstorable') {
    return new ApiError(400, 'The request has a value that cannot be stored: a number or a text is too large.');
  }
  if (error instanceof StoreError) {
    return new ApiError(503, 'The state cannot be read or written at the moment; see the log of run-bridge.', {
      'Retry-After': '1',
    });
  }
  // An error of Express, about a path or a body that it cannot read.
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new ApiError(status, `The request cannot be read: ${error instanceof Error ? error.message : status}.`);
  }
  return new ApiError(500, 'run-bridge failed on this request; see its log.');
}
