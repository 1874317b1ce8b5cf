import { type Request, Router } from 'express';
import { lazy } from '../core/lazy.js';

/**
 * Returns a router that is created by its first request, so that a start does not wait for its code.
 * @param which the path prefix of its requests, or a predicate
 * @param make creates the router
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

/** Whether a browser requests a page at an unknown path, which gets a page as response; programs get a text. For a router that is mounted last. */
export function isLostBrowser({ method, path, headers }: Pick<Request, 'method' | 'path' | 'headers'>): boolean {
  return method === 'GET' && !path.startsWith('/api/') && /\btext\/html\b/.test(headers.accept ?? '');
}

/** The cookie with a browser's token. */
export const PAGE_COOKIE = 'run_bridge_token';
const PAGES =
  /^\/(?:runs|events|deploy|jobs|webhooks|query(?:\.csv|\.parquet)?|settings|models|sign-in|sign-out|arrive|pages)(?:\/|$)/;

/** Whether a request is for the pages: a path of one; `/` if HTML is requested, since programs get a text there; and requests of a signed-in browser to the API. */
export function isForPages({ path, headers }: Pick<Request, 'path' | 'headers'>): boolean {
  if (path === '/') return /\btext\/html\b/.test(headers.accept ?? '');
  return PAGES.test(path) || (path.startsWith('/api/') && headers.cookie?.includes(PAGE_COOKIE) === true);
}
