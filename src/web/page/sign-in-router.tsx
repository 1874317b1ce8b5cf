import express, { type Request, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { may } from '../../api/permissions.js';
import { Layout, sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { type PageSession, tooManyTries } from './page-session.js';

/** The largest form, in bytes. */
const MAX_FORM_BYTES = 8 * 1024;

/** Serves the pages for signing in and out. */
export function signInRouter(
  session: PageSession,
  { authenticator, links, version }: Pick<PageDeps, 'authenticator' | 'links' | 'version'>,
): Router {
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });
  router.get('/sign-in', async (request, response) => {
    const { link } = request.query;
    const to = localPath(request.query.to);
    const shown = { to, hasLinks: links !== null, version };
    // A link is used up by opening it, not by a program that requests its head, or by a browser that prefetches it.
    if (links === null || typeof link !== 'string' || request.method === 'HEAD' || isPrefetch(request)) {
      await sendPage(response, <SignInPage {...shown} problem={null} />);
      return;
    }
    const result = await links.exchange(link, request.socket.remoteAddress ?? '');
    switch (result.kind) {
      case 'signedIn':
        session.keep(request, response, result.token);
        // The URL with the secret must not get into the history or a referrer.
        response.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }).redirect(303, to);
        return;
      case 'limited':
        throw tooManyTries(result.retryAfterMs);
      case 'spent':
        await sendPage(response, <SignInPage {...shown} problem={SPENT} />, 401);
    }
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
        await sendPage(response, <SignInPage {...{ to, problem, version }} hasLinks={links !== null} />, 401);
      }
    }
  });
  router.post('/sign-out', (request, response) => {
    session.forget(request, response);
    response.redirect(303, '/sign-in');
  });
  return router;
}

const SPENT =
  'That link no longer signs in: links are good for ten minutes, and once. If you did not use it, somebody else on this machine did: run-bridge token list shows who is signed in.';

/** Whether a browser prefetches a page. */
function isPrefetch(request: Request): boolean {
  return /\b(?:prefetch|prerender|preview)\b/.test(`${request.get('Sec-Purpose')} ${request.get('Purpose')}`);
}

function fieldsOf(body: unknown): { readonly token: string; readonly to: string } {
  if (typeof body !== 'object' || body === null) throw new ApiError(400, 'The form has no token.');
  const fields = new Map<string, unknown>(Object.entries(body));
  const token = fields.get('token');
  return { token: typeof token === 'string' ? token.trim() : '', to: localPath(fields.get('to')) };
}

/** What the page for signing in shows. */
export interface SignInProps {
  /** The path of this server to continue at. */
  readonly to: string;
  /** Why the last attempt failed; `null` before the first. */
  readonly problem: string | null;
  /** Whether sign-in links can be used here. */
  readonly hasLinks: boolean;
  readonly version: string;
}

/** The form for a token. */
export function SignInPage({ to, problem, hasLinks, version }: SignInProps) {
  return (
    <Layout title="Sign in" caller={null} version={version}>
      <div class="narrow">
        <h1>Sign in</h1>
        {problem !== null && (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <form method="post" action="/sign-in" class="stack">
          <input type="hidden" name="to" value={to} />
          <label for="token">Token</label>
          <input
            id="token"
            name="token"
            type="password"
            autocomplete="current-password"
            spellcheck={false}
            required
            autofocus
          />
          <button type="submit">Sign in</button>
        </form>
        {hasLinks && (
          <>
            <p>On this machine no token is needed. This opens the browser, signed in:</p>
            <pre class="command" tabindex={0}>
              run-bridge open
            </pre>
          </>
        )}
        <p>
          The first start left a token in the file <code>admin-token</code> of the data folder. This makes another one,
          which may look and change nothing:
        </p>
        <pre class="command" tabindex={0}>
          run-bridge token create --name me --permission read_only
        </pre>
        <p class="hint">
          The token stays in this browser for a week, in a cookie that no script can read.{' '}
          {(to !== '/' || problem === SPENT) && <a href={to}>Signed in already? Go on.</a>}
        </p>
      </div>
    </Layout>
  );
}

const HERE = 'http://here.invalid';

/** Returns the path of this server that a request names, with its query; `/` for anything else, above all for URLs of other servers. */
export function localPath(value: unknown): string {
  if (typeof value !== 'string' || !value.startsWith('/')) return '/';
  if (!URL.canParse(value, HERE)) return '/';
  const { origin, pathname, search } = new URL(value, HERE);
  // `//elsewhere` and `/\elsewhere` are URLs of other servers; so is a path that begins like that after its dots are resolved.
  return origin !== HERE || pathname.startsWith('//') ? '/' : `${pathname}${search}`;
}

/**
 * A page for visitors from a link in a chat or a mail: their browser does not send the cookie until a page of this server leads on. It leads to `/arrive`, since browsers treat a page that leads to
 * itself as the same visit.
 * @param to the requested path
 */
export function ArrivalPage({ to }: { readonly to: string }) {
  const href = `/arrive?to=${encodeURIComponent(to)}`;
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="refresh" content={`0;url=${href}`} />
        <title>run-bridge</title>
      </head>
      <body>
        <a href={href}>Go on to run-bridge</a>
      </body>
    </html>
  );
}
