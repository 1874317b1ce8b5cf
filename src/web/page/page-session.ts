import { parseCookie } from 'cookie';
import type { CookieOptions, Request, RequestHandler, Response } from 'express';
import { ApiError } from '../../api/api-error.js';
import type { Admission, Authenticator } from '../../api/authenticator.js';
import { SENDER } from '../../api/caller.js';
import { isHttps } from '../../api/parameters.js';
import { PAGE_COOKIE } from '../lazy-router.js';
import type { PageDeps } from './page-deps.js';

/** How long a browser stays signed in, in milliseconds: a week. */
const MAX_AGE_MS = 7 * 86_400_000;

/** The token of a browser, in a cookie that no script can read and no request from another site carries. */
export class PageSession {
  /** @param publicUrl the public address of the pages; `null` if not configured */
  constructor(private readonly publicUrl: string | null) {}

  /** Returns the token in a request; `undefined` if there is none. */
  tokenIn(request: Pick<Request, 'headers'>): string | undefined {
    const token = parseCookie(request.headers.cookie ?? '')[PAGE_COOKIE];
    return token === '' ? undefined : token;
  }

  keep(request: Request, response: Response, token: string): void {
    response.cookie(PAGE_COOKIE, token, { ...this.options(request), maxAge: MAX_AGE_MS });
  }

  forget(request: Request, response: Response): void {
    response.clearCookie(PAGE_COOKIE, this.options(request));
  }

  /** Returns the options of the cookie. The bridge has no TLS; a header or the configuration shows whether a proxy has. */
  private options(request: Request): CookieOptions {
    const isSecure =
      isHttps(request) ||
      (this.publicUrl !== null && /^https:/i.test(this.publicUrl) && hostOf(this.publicUrl) === request.get('Host'));
    return { httpOnly: true, sameSite: 'strict', secure: isSecure, path: '/' };
  }
}

function hostOf(url: string): string {
  return new URL(url).host;
}

/** Checks the token of a visitor's request. @throws StoreError */
export function admissionOf(
  authenticator: Pick<Authenticator, 'admit'>,
  session: PageSession,
  { headers, socket }: Pick<Request, 'headers' | 'socket'>,
): Promise<Admission> {
  const kept = session.tokenIn({ headers });
  const authorization = headers.authorization ?? (kept === undefined ? undefined : `Token ${kept}`);
  return authenticator.admit(authorization, socket.remoteAddress ?? '');
}

/** What visitors are admitted with. */
type VisitorDeps = Pick<PageDeps, 'authenticator' | 'accounts'>;

/** Stores the visitor of a page for `authorize` and `callerOf`. Without a token, only pages that need no permission are accessible. */
export function admitVisitor(session: PageSession, { authenticator, accounts }: VisitorDeps): RequestHandler {
  return async (request, response, next) => {
    const admission = await admissionOf(authenticator, session, request);
    switch (admission.kind) {
      case 'admitted':
        response.locals.caller = { ...admission.caller, isAlone: await accounts.isAlone() };
        break;
      case 'missing':
        response.locals.caller = SENDER;
        break;
      case 'invalid':
        session.forget(request, response);
        throw new ApiError(401, 'That token is no longer valid: it was revoked or has expired.');
      case 'limited':
        throw tooManyTries(admission.retryAfterMs);
    }
    next();
  };
}

/** Returns the error for an address with too many failed attempts. */
export function tooManyTries(retryAfterMs: number): ApiError {
  const seconds = Math.ceil(retryAfterMs / 1_000);
  return new ApiError(429, `Too many invalid tokens from your address; try again in ${seconds} s.`, {
    'Retry-After': String(seconds),
  });
}

/** Lets links on the pages lead to the API's documents and artifacts: a reading request without a token, from a page of this server or from the address bar, uses the token of its browser. */
export function cookieToken(session: PageSession): RequestHandler {
  return (request, _response, next) => {
    const site = request.get('Sec-Fetch-Site');
    const isFromPages = site === undefined || site === 'same-origin' || site === 'none';
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (isFromPages && isReading && request.headers.authorization === undefined) {
      const token = session.tokenIn(request);
      if (token !== undefined) request.headers.authorization = `Token ${token}`;
    }
    next();
  };
}

/**
 * Accepts changing requests only from forms of these pages: besides the cookie, which no request from another site carries, the browser sends the origin of a form. Requests without an origin are
 * refused as well.
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
    const isFromPages = site === undefined ? isAt(origin, hosts) : site === 'same-origin';
    if (!isFromPages) throw new ApiError(403, 'This form was not sent from a page of run-bridge, so nothing was done.');
    next();
  };
}

function isAt(origin: string | undefined, hosts: readonly (string | undefined)[]): boolean {
  return origin !== undefined && URL.canParse(origin) && hosts.includes(new URL(origin).host);
}
