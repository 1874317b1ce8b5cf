import type { RequestHandler, Response } from 'express';
import { ApiError } from './api-error.js';
import type { Authenticator } from './authenticator.js';
import { type Caller, SENDER } from './caller.js';
import { may, type Right } from './permissions.js';

/**
 * Requires a valid token, and stores its caller for `authorize` and `callerOf`.
 * @param isOpen whether the address accepts telemetry without a token: then anonymous requests are senders
 */
export function authenticate(authenticator: Authenticator, isOpen: boolean): RequestHandler {
  return async (request, response, next) => {
    const admission = await authenticator.admit(request.headers.authorization, request.socket.remoteAddress ?? '');
    switch (admission.kind) {
      case 'admitted':
        response.locals.caller = admission.caller;
        next();
        return;
      case 'missing':
        if (!isOpen) throw tokenNeeded();
        response.locals.caller = SENDER;
        next();
        return;
      case 'invalid':
        throw new ApiError(401, 'Invalid token.', CHALLENGE);
      case 'limited': {
        const seconds = Math.ceil(admission.retryAfterMs / 1_000);
        throw new ApiError(429, `Too many requests with invalid tokens; try again in ${seconds} s.`, {
          'Retry-After': String(seconds),
        });
      }
    }
  };
}

/** The response to a request without a token. */
export function tokenNeeded(): ApiError {
  return new ApiError(401, 'A token is needed: send the header "Authorization: Token <token>".', CHALLENGE);
}

const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="run-bridge"' };

/** A guard that exposes its permission, so that a test can compare every route with the table. */
export type Guard = RequestHandler & { readonly right: Right | null };

/**
 * Stands before a route's handler: `router.get(path, authorize('runs:read'), …)`. A path's `:accountId` must be the
 * caller's; another's is 404, like one that does not exist.
 * @param right what the caller must have; `null` for every caller with a good token
 */
export function authorize(right: Right | null): Guard {
  const guard: RequestHandler = (request, response, next) => {
    const caller = callerOf(response);
    const { accountId } = request.params;
    if (caller === SENDER && (right === null || !may(caller, right))) throw tokenNeeded();
    if (accountId !== undefined && accountId !== String(caller.accountId)) throw ApiError.notFound();
    if (right !== null && !may(caller, right)) {
      throw new ApiError(
        403,
        `This token is not allowed to do that: its permission set ${caller.permission} does not include ${right}.`,
      );
    }
    next();
  };
  return Object.assign(guard, { right });
}

/** The caller of a request, after `authenticate`. */
export function callerOf(response: Response): Caller {
  const { caller }: { readonly caller?: Caller } = response.locals;
  if (caller === undefined) throw new Error('this route is mounted before authenticate()');
  return caller;
}
