import { type Request, Router } from 'express';
import { lazy } from '../core/lazy.js';

/**
 * A router that is made when the first request for it comes: what it takes to read bodies is no reason for a start to wait.
 * @param which the path below which its requests are, or what tells whether one is for it
 * @param make makes it
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
