import { type Request, Router } from 'express';

/**
 * A router that is made when the first request for it comes: what it takes to read bodies is no reason for a start to wait.
 * @param which the path below which its requests are, or what tells whether one is for it
 * @param make makes it; called once
 */
export function lazyRouter(which: string | ((request: Request) => boolean), make: () => Promise<Router>): Router {
  const router = Router();
  const isFor = typeof which === 'string' ? ({ path }: Request) => path.startsWith(which) : which;
  let made: Promise<Router> | undefined;
  router.use(async (request, response, next) => {
    if (!isFor(request)) {
      next();
      return;
    }
    made ??= make();
    (await made)(request, response, next);
  });
  return router;
}
