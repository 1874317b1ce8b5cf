import { parseCookie } from 'cookie';
import type { CookieOptions, Request, Response } from 'express';
import { PAGE_COOKIE } from './page-cookie.js';

/** How long a browser stays signed in, in milliseconds: a week. */
const MAX_AGE_MS = 7 * 86_400_000;

/** The token that a browser keeps, in a cookie that no script reads and no other site's request carries. */
export class PageSession {
  /** @param publicUrl where others reach the pages; `null` where nobody said */
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

  /** The bridge speaks no TLS: that a proxy does, the proxy or the configuration says. Who lies of it harms nobody else. */
  private options(request: Request): CookieOptions {
    const isSecure =
      request.get('X-Forwarded-Proto')?.split(',')[0]?.trim() === 'https' ||
      (this.publicUrl !== null && /^https:/i.test(this.publicUrl) && hostOf(this.publicUrl) === request.get('Host'));
    return { httpOnly: true, sameSite: 'strict', secure: isSecure, path: '/' };
  }
}

function hostOf(url: string): string {
  return new URL(url).host;
}
