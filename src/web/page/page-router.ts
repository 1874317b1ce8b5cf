import { readFile } from 'node:fs/promises';
import { type RequestHandler, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { lazy } from '../../core/lazy.js';
import { packageFile } from '../../core/package-file.js';
import type { PageDeps } from './page-deps.js';
import { pageFailures } from './page-failures.js';
import { admitVisitor, PageSession } from './page-session.js';
import { runListRouter } from './run-list-page.js';
import { runLogsRouter } from './run-logs-page.js';
import { runNodesRouter } from './run-nodes-page.js';
import { runRouter } from './run-page.js';
import { runTimelineRouter } from './run-timeline-page.js';
import { signInRouter } from './sign-in-router.js';

/** The pages, all behind tokens except sign-in. Unknown paths get a page that says so. */
export function pageRouter(deps: PageDeps): Router {
  const session = new PageSession(deps.publicUrl);
  const router = Router();
  // The API is not answered here: it checks the token itself.
  router.use('/api', cookieToken(session), (_request, _response, next) => next('router'));
  router.use(sameOrigin(deps.publicUrl));
  router.use(assetRouter(), signInRouter(session, deps));
  router.use(admitVisitor(deps.authenticator, session));
  router.use(runListRouter(deps), runRouter(deps), runNodesRouter(deps), runTimelineRouter(deps), runLogsRouter(deps));
  router.use(...deps.routers);
  router.use(() => {
    throw ApiError.notFound();
  });
  router.use(pageFailures(session, deps));
  return router;
}

const TYPES = {
  'style.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'timeline.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** What pages are shown with, from the package's folder `pages/`; needs no token. */
export function assetRouter(): Router {
  const router = Router();
  for (const [name, type] of Object.entries(TYPES)) {
    const read = lazy(() => readFile(packageFile(`pages/${name}`)));
    router.get(`/pages/${name}`, async (_request, response) => {
      // Pages name them with the program's version.
      response.set({
        'Cache-Control': 'public, max-age=86400',
        'X-Content-Type-Options': 'nosniff',
        'Content-Type': type,
      });
      response.send(await read.get());
    });
  }
  return router;
}

/**
 * Lets links of the pages lead to the API's documents and artifacts: a request that only reads, comes from a page of this
 * server (or from the address bar) and has no token of its own, uses the one of its browser.
 */
export function cookieToken(session: PageSession): RequestHandler {
  return (request, _response, next) => {
    const site = request.get('Sec-Fetch-Site');
    const isOwn = site === undefined || site === 'same-origin' || site === 'none';
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (isOwn && isReading && request.headers.authorization === undefined) {
      const token = session.tokenIn(request);
      if (token !== undefined) request.headers.authorization = `Token ${token}`;
    }
    next();
  };
}

/**
 * Accepts changing requests only from forms of these pages: besides the cookie, which no request of another site carries, the browser
 * sends the origin of a form. Requests without it are refused as well.
 * @param publicUrl the public address of the pages, in case a proxy changes `Host`
 */
export function sameOrigin(publicUrl: string | null): RequestHandler {
  return (request, _response, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') {
      next();
      return;
    }
    const site = request.get('Sec-Fetch-Site');
    const hosts = [request.get('Host'), publicUrl === null ? undefined : new URL(publicUrl).host];
    const origin = request.get('Origin');
    const isOwn = site === undefined ? isAt(origin, hosts) : site === 'same-origin';
    if (!isOwn) throw new ApiError(403, 'This form was not sent from a page of run-bridge, so nothing was done.');
    next();
  };
}

function isAt(origin: string | undefined, hosts: readonly (string | undefined)[]): boolean {
  return origin !== undefined && URL.canParse(origin) && hosts.includes(new URL(origin).host);
}
