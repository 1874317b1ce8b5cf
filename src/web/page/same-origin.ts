import type { RequestHandler } from 'express';
import { ApiError } from '../../api/api-error.js';

/**
 * Of requests that change something, takes only what forms of these pages send: beside the cookie, which no other site's request carries, the browser itself
 * says where a form came from. What says nothing of it is refused as well.
 * @param publicUrl where others reach the pages, in case a proxy changes `Host`
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
