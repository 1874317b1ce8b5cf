import { Router } from 'express';

/**
 * A router that is made when the first request for it comes: what it takes to read bodies is no reason for a start to wait.
 * @param path below which its requests are
 * @param make makes it; called once
 */
export function lazyRouter(path: string, make: () => Promise<Router>): Router {
  const router = Router();
  let made: Promise<Router> | undefined;
  router.use(async (request, response, next) => {
    if (!request.path.startsWith(path)) {
      next();
      return;
    }
    made ??= make();
    (await made)(request, response, next);
  });
  return router;
}
