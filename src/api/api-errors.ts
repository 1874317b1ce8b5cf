import type { ErrorRequestHandler } from 'express';
import type { Logger } from '../component/logger.js';
import { failure } from './envelope.js';
import { failureHandler } from './failure-handler.js';

/** Turns whatever a router throws into an answer in the envelope; mounted after the routers. */
export function apiErrors(logger: Logger): ErrorRequestHandler {
  return failureHandler(logger, ({ status, userMessage, headers }, _request, response) => {
    response.status(status).set(headers).json(failure(status, userMessage));
  });
}
