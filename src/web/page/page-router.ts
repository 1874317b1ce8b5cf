import { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { admitVisitor } from './admit-visitor.js';
import { assetRouter } from './asset-router.js';
import { cookieToken } from './cookie-token.js';
import type { PageDeps } from './page-deps.js';
import { pageFailures } from './page-failures.js';
import { PageSession } from './page-session.js';
import { runListRouter } from './run-list-router.js';
import { runRouter } from './run-router.js';
import { sameOrigin } from './same-origin.js';
import { signInRouter } from './sign-in-router.js';
import { webhookRouter } from './webhook-router.js';

/** The pages, all behind tokens but the one that takes them. What is not among them is a page that says so. */
export function pageRouter(deps: PageDeps): Router {
  const session = new PageSession(deps.publicUrl);
  const router = Router();
  // The API is not answered here: it checks the token itself.
  router.use('/api', cookieToken(session), (_request, _response, next) => next('router'));
  router.use(sameOrigin(deps.publicUrl));
  router.use(assetRouter(), signInRouter(session, deps));
  router.use(admitVisitor(deps.authenticator, session));
  router.use(runListRouter(deps), runRouter(deps), webhookRouter(deps));
  router.use(() => {
    throw ApiError.notFound();
  });
  router.use(pageFailures(session, deps));
  return router;
}
