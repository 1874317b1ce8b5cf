import { type ErrorRequestHandler, Router } from 'express';
import type { Logger } from '../core/logger.js';
import { API_PATH } from '../run/api-path.js';
import { ApiError } from './api-error.js';
import { type Authenticator, authenticate, callerOf, tokenNeeded } from './authenticator.js';
import { SENDER } from './caller.js';
import { failure } from './envelope.js';
import { failureHandler } from './failure-handler.js';
import { METRICS_PATH } from './metrics-path.js';

/** Where the hosted platform's API is. */
export const V2_PATH = '/api/v2';
/** Where its webhooks are. */
export const V3_PATH = '/api/v3';

/** What the router works with. */
export interface ApiRouterDeps {
  readonly authenticator: Authenticator;
  /** Whether the address takes telemetry without a token. */
  readonly isOpen: boolean;
  /** Each with its whole paths, and `authorize` before every handler. */
  readonly routers: readonly Router[];
  readonly logger: Logger;
}

/**
 * Mounts the API behind its tokens: nothing below its paths is answered without one, not even a 404. Unknown
 * paths get the envelope below all of `/api`: clients read a JSON body whatever they asked for.
 */
export function apiRouter({ authenticator, isOpen, routers, logger }: ApiRouterDeps): Router {
  const router = Router();
  const paths = [V2_PATH, V3_PATH, API_PATH, METRICS_PATH];
  router.use(paths, authenticate(authenticator, isOpen));
  for (const one of routers) router.use(one);
  router.use(paths, (_request, response) => {
    throw callerOf(response) === SENDER ? tokenNeeded() : ApiError.notFound();
  });
  router.use('/api', () => {
    throw ApiError.notFound();
  });
  router.use(['/api', METRICS_PATH], apiErrors(logger));
  return router;
}

/** Maps every error of a router to a response in the envelope; mounted after the routers. */
export function apiErrors(logger: Logger): ErrorRequestHandler {
  return failureHandler(logger, ({ status, userMessage, headers }, _request, response) => {
    response.status(status).set(headers).json(failure(status, userMessage));
  });
}
