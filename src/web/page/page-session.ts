import { parseCookie } from 'cookie';
import type { CookieOptions, Request, RequestHandler, Response } from 'express';
import { ApiError } from '../../api/api-error.js';
import type { Authenticator } from '../../api/authenticator.js';
import { SENDER } from '../../api/caller.js';
import { isHttps } from '../../api/parameters.js';
import { PAGE_COOKIE } from '../lazy-router.js';

/** How long a browser stays signed in, in milliseconds: a week. */
const MAX_AGE_MS = 7 * 86_400_000;

/** The token that a browser keeps, in a cookie that no script reads and no other site's request carries. */
export class PageSession {
  /** @param publicUrl the public address of the pages; `null` if not configured */
  constructor(private readonly publicUrl: string | null) {}

  /** The token that a request carries; `undefined` where it carries none. */
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

  /** The bridge speaks no TLS: a proxy does, as a header or the configuration says. */
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

/** Stores the visitor of a page for `authorize` and `callerOf`; without a token there is access only to pages that need no right. */
export function admitVisitor(authenticator: Pick<Authenticator, 'admit'>, session: PageSession): RequestHandler {
  return async (request, response, next) => {
    const kept = session.tokenIn(request);
    const authorization = request.headers.authorization ?? (kept === undefined ? undefined : `Token ${kept}`);
    const admission = await authenticator.admit(authorization, request.socket.remoteAddress ?? '');
    switch (admission.kind) {
      case 'admitted':
        response.locals.caller = admission.caller;
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

/** What is answered where an address has tried too often. */
export function tooManyTries(retryAfterMs: number): ApiError {
  const seconds = Math.ceil(retryAfterMs / 1_000);
  return new ApiError(429, `Too many invalid tokens from your address; try again in ${seconds} s.`, {
    'Retry-After': String(seconds),
  });
}
