import express, { Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { may } from '../../api/permissions.js';
import { tooManyTries } from './admit-visitor.js';
import { localPath } from './local-path.js';
import type { PageDeps } from './page-deps.js';
import type { PageSession } from './page-session.js';
import { sendPage } from './send-page.js';
import { SignInPage } from './sign-in-page.js';

/** The longest form. */
const MAX_FORM_BYTES = 8 * 1024;

/** Where a browser gets its token, and gives it back. */
export function signInRouter(
  session: PageSession,
  { authenticator, version }: Pick<PageDeps, 'authenticator' | 'version'>,
): Router {
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });
  router.get('/sign-in', async (request, response) => {
    await sendPage(response, <SignInPage to={localPath(request.query.to)} problem={null} version={version} />);
  });
  router.get('/arrive', (request, response) => {
    response.redirect(303, localPath(request.query.to));
  });
  router.post('/sign-in', form, async (request, response) => {
    const { token, to } = fieldsOf(request.body);
    const admission = await authenticator.admit(`Token ${token}`, request.socket.remoteAddress ?? '');
    switch (admission.kind) {
      case 'admitted': {
        session.keep(request, response, token);
        const isForWebhooks = !may(admission.caller, 'runs:read') && may(admission.caller, 'webhooks:read');
        response.redirect(303, to === '/' && isForWebhooks ? '/webhooks' : to);
        return;
      }
      case 'limited':
        throw tooManyTries(admission.retryAfterMs);
      case 'missing':
      case 'invalid': {
        const problem = 'That token is not valid: it is unknown, revoked or expired.';
        await sendPage(response, <SignInPage to={to} problem={problem} version={version} />, 401);
      }
    }
  });
  router.post('/sign-out', (request, response) => {
    session.forget(request, response);
    response.redirect(303, '/sign-in');
  });
  return router;
}

function fieldsOf(body: unknown): { readonly token: string; readonly to: string } {
  if (typeof body !== 'object' || body === null) throw new ApiError(400, 'The form has no token.');
  const fields = new Map<string, unknown>(Object.entries(body));
  const token = fields.get('token');
  return { token: typeof token === 'string' ? token.trim() : '', to: localPath(fields.get('to')) };
}
