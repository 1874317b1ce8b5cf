import type { Request } from 'express';

/** The cookie that has a browser's token. */
export const PAGE_COOKIE = 'run_bridge_token';
const PAGES = /^\/(?:runs|deploy|webhooks|sign-in|sign-out|arrive|pages)(?:\/|$)/;

/**
 * Whether a request is for the pages: a path of one; `/` if HTML is requested, since programs get a text there; and
 * requests of a signed-in browser to the API.
 */
export function isForPages({ path, headers }: Pick<Request, 'path' | 'headers'>): boolean {
  if (path === '/') return /\btext\/html\b/.test(headers.accept ?? '');
  return PAGES.test(path) || (path.startsWith('/api/') && headers.cookie?.includes(PAGE_COOKIE) === true);
}
