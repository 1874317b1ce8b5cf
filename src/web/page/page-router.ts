import { readFile } from 'node:fs/promises';
import { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { lazy } from '../../core/lazy.js';
import { packageFile } from '../../core/package-file.js';
import { cleanLine, cut } from '../../core/text.js';
import { nodePanels } from './node-panel.js';
import type { PageDeps } from './page-deps.js';
import { pageFailures } from './page-failures.js';
import { PageManifests } from './page-manifests.js';
import { admitVisitor, cookieToken, PageSession, sameOrigin } from './page-session.js';
import { runArtifactsRouter } from './run-artifacts-page.js';
import { runCompareRouter } from './run-compare-page.js';
import { runEventsRouter } from './run-events.js';
import { runGraphRouter } from './run-graph-page.js';
import { runListRouter } from './run-list-page.js';
import { runLogsRouter } from './run-logs-page.js';
import { runNodesRouter } from './run-nodes-page.js';
import { runRouter } from './run-page.js';
import { runTimelineRouter } from './run-timeline-page.js';
import { signInRouter } from './sign-in-router.js';

/** The pages, all behind tokens except sign-in. Unknown paths get a page that says so. */
export function pageRouter(deps: PageDeps): Router {
  const session = new PageSession(deps.publicUrl);
  const manifests = new PageManifests(deps.artifacts);
  const router = Router();
  // Requests to the API are not answered here, since the API checks the token.
  router.use('/api', cookieToken(session), (_request, _response, next) => next('router'));
  router.use(sameOrigin(deps.publicUrl));
  router.use(assetRouter(), signInRouter(session, deps));
  router.use(admitVisitor(session, deps));
  router.use(
    runListRouter(deps),
    runEventsRouter(session, deps),
    runRouter(deps, manifests),
    runNodesRouter(deps, nodePanels(deps, manifests)),
    runTimelineRouter(deps, manifests),
    runLogsRouter(deps),
    runArtifactsRouter(deps),
    runCompareRouter(deps),
    runGraphRouter(deps, manifests),
  );
  router.use(...deps.routers);
  router.use(({ path }) => {
    throw new ApiError(404, `There is no page ${cut(decodedPath(path), MAX_PATH)}.`);
  });
  router.use(pageFailures(session, deps));
  return router;
}

/** The longest path in an error message, in characters. */
const MAX_PATH = 200;

/** Decodes a path for people; returns it unchanged if it is not validly encoded. */
function decodedPath(path: string): string {
  try {
    return cleanLine(decodeURIComponent(path));
  } catch {
    return path;
  }
}

const TYPES = {
  'style.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'timeline.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** Serves the static files of the pages from the package's folder `pages/`; needs no token. */
export function assetRouter(): Router {
  const router = Router();
  for (const [name, type] of Object.entries(TYPES)) {
    const read = lazy(() => readFile(packageFile(`pages/${name}`)));
    router.get(`/pages/${name}`, async (_request, response) => {
      // Pages add the program's version to these URLs.
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
