import type { RequestHandler } from 'express';
import { ApiError } from '../../api/api-error.js';
import type { Authenticator } from '../../api/authenticator.js';
import { SENDER } from '../../api/caller.js';
import type { PageSession } from './page-session.js';

/** Notes who looks at a page, for `authorize` and `callerOf`; who has no token may see nothing that a right is needed for. */
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
