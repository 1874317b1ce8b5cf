import type { RequestHandler } from 'express';
import type { PageSession } from './page-session.js';

/**
 * Lets links of the pages lead to the API's documents and artifacts: a request that only reads, comes from a page of this
 * very server (or from the address bar) and carries no token of its own, has the one of its browser.
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
