import { type Request, Router } from 'express';
import { lazy } from '../core/lazy.js';

/**
 * A router that is created by its first request: a start must not wait for the code that reads bodies.
 * @param which the path prefix of its requests, or a predicate
 * @param make creates it
 */
export function lazyRouter(which: string | ((request: Request) => boolean), make: () => Promise<Router>): Router {
  const router = Router();
  const isFor = typeof which === 'string' ? ({ path }: Request) => path.startsWith(which) : which;
  const made = lazy(make);
  router.use(async (request, response, next) => {
    if (!isFor(request)) {
      next();
      return;
    }
    (await made.get())(request, response, next);
  });
  return router;
}
