import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import type { TokenRow, TokenStore } from '../storage/account-store.js';
import { ApiError } from './api-error.js';
import { type Caller, SENDER } from './caller.js';
import type { FailedTries } from './failed-tries.js';
import { may, type Right } from './permissions.js';

/** The prefix by which secret scanners, and people, recognise a token. */
const PREFIX = 'rbt_';
/** Random bytes of a token: 256 bits cannot be guessed, so one round of SHA-256 protects it. */
const SECRET_BYTES = 32;

const WHOLE = /^rbt_[\w-]{43}$/;

/** Makes a new token as it is shown, once: `rbt_` and 43 letters, digits, `-` and `_`. */
export function newSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64url')}`;
}

/** Returns whether a text looks like a token of run-bridge. */
export function isSecret(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Returns whether a text is a token of run-bridge as they are made. */
export function isWholeSecret(text: string): boolean {
  return WHOLE.test(text);
}

/** Returns the stored form of a token: SHA-256, 32 bytes. Accepts any text. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The result of authentication. `invalid` is every invalid token: unknown, malformed, expired and revoked ones look the same. */
export type Admission =
  | { readonly kind: 'admitted'; readonly caller: Caller }
  | { readonly kind: 'missing' | 'invalid' }
  /** Too many tries from that address have failed. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

/** What an authenticator works with. */
export interface AuthenticatorDeps {
  readonly tokens: Pick<TokenStore, 'findGood' | 'noteUse'>;
  readonly tries: FailedTries;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A token that was good is taken for good for so long without another look, in milliseconds: revoking it takes effect then. */
const GOOD_MS = 5_000;
/** Maximum number of cached valid tokens; beyond, the least recently used one is looked up again. */
const MAX_GOOD = 1_000;
/** When a token was last used is written down to this precision, in milliseconds. */
const USE_NOTED_MS = 600_000;

/** A token that was good when it was looked up. */
interface Good {
  readonly caller: Caller;
  readonly expiresUnixMs: number | null;
  /** In monotonic milliseconds. */
  readonly lookedUpMs: number;
}

/**
 * Authenticates a request's `Authorization`. A new token is valid at once; a revoked one is
 * rejected within five seconds. A cached valid token is also accepted from an address that has failed too often:
 * behind a proxy or a NAT, one misconfigured client does not lock out others.
 */
export class Authenticator {
  /** By the token's hash, in the order of last use. */
  private readonly good = new Map<string, Good>();
  /** By the token's hash. */
  private readonly granted = new Map<string, Caller>();

  constructor(private readonly deps: AuthenticatorDeps) {}

  /** Accepts a token that is kept only in memory, as long as the program runs: for commands that it starts itself. */
  grant(token: string, caller: Caller): void {
    this.granted.set(hashOf(token).toString('hex'), caller);
  }

  /**
   * @param authorization `Token …` or `Bearer …`
   * @param address of the sender; an IP address
   * @throws StoreError
   */
  async admit(authorization: string | undefined, address: string): Promise<Admission> {
    if (authorization === undefined) return { kind: 'missing' };
    const { tries } = this.deps;
    // Every token is hashed and looked up: a malformed one takes as long as an unknown one.
    const hash = hashOf(tokenIn(authorization));
    const key = hash.toString('hex');
    const fresh = this.freshCaller(key);
    if (fresh !== undefined) return { kind: 'admitted', caller: fresh };
    const isNew = !this.good.has(key);
    const retryAfterMs = isNew ? tries.take(address) : null;
    if (retryAfterMs !== null) return { kind: 'limited', retryAfterMs };
    const caller = await this.find(key, hash);
    if (caller === undefined) return { kind: 'invalid' };
    if (isNew) tries.giveBack(address);
    return { kind: 'admitted', caller };
  }

  /**
   * Returns the caller of an optional token; `undefined` for everything else. Failures are not counted: the header may contain
   * another program's credentials.
   * @throws StoreError
   */
  async recognize(authorization: string): Promise<Caller | undefined> {
    const token = tokenIn(authorization);
    if (!isSecret(token)) return undefined;
    const hash = hashOf(token);
    const key = hash.toString('hex');
    return this.freshCaller(key) ?? (await this.find(key, hash));
  }

  /** Returns the caller of a token that was valid a moment ago. */
  private freshCaller(key: string): Caller | undefined {
    const known = this.good.get(key);
    return this.granted.get(key) ?? (known !== undefined && this.isFresh(known) ? known.caller : undefined);
  }

  private async find(key: string, hash: Buffer): Promise<Caller | undefined> {
    const row = await this.lookUp(hash);
    if (row !== undefined) return this.remember(key, row);
    this.good.delete(key);
    return undefined;
  }

  private isFresh({ lookedUpMs, expiresUnixMs }: Good): boolean {
    const { clock } = this.deps;
    return clock.monotonicMs() - lookedUpMs < GOOD_MS && (expiresUnixMs === null || expiresUnixMs > clock.nowUnixMs());
  }

  /** Finds the token's row if it is good. Takes the same steps for every one that is not. */
  private async lookUp(hash: Buffer): Promise<TokenRow | undefined> {
    const row = await this.deps.tokens.findGood(hash.toString('hex'), this.deps.clock.nowUnixMs());
    return timingSafeEqual(hash, Buffer.from(row?.hash ?? NO_HASH, 'hex')) ? row : undefined;
  }

  private remember(key: string, row: TokenRow): Caller {
    const { clock, tokens, logger } = this.deps;
    const caller: Caller = { accountId: row.accountId, tokenId: row.id, permission: row.permission };
    this.good.delete(key);
    for (const oldest of this.good.keys()) {
      if (this.good.size < MAX_GOOD) break;
      this.good.delete(oldest);
    }
    this.good.set(key, { caller, expiresUnixMs: row.expiresUnixMs, lookedUpMs: clock.monotonicMs() });
    const nowUnixMs = clock.nowUnixMs();
    if (nowUnixMs - (row.usedUnixMs ?? 0) > USE_NOTED_MS) {
      // Not awaited, and a failure to save it is no reason to reject the token.
      tokens
        .noteUse(row.id, nowUnixMs)
        .catch((error: unknown) => logger.debug({ reason: String(error) }, 'failed to save the last use of a token'));
    }
    return caller;
  }
}

const NO_HASH = '0'.repeat(64);

function tokenIn(authorization: string): string {
  return /^(?:token|bearer) +(.*)$/i.exec(authorization)?.[1]?.trim() ?? '';
}

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

/** Returns the response to a request without a token. */
export function tokenNeeded(): ApiError {
  return new ApiError(401, 'A token is needed: send the header "Authorization: Token <token>".', CHALLENGE);
}

const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="run-bridge"' };

/** A guard that exposes its permission, so that a test can compare every route with the table. */
export type Guard = RequestHandler & { readonly right: Right | null };

/**
 * Makes what stands before a route's handler: `router.get(path, authorize('runs:read'), …)`. A path's `:accountId` must be the
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

/** Returns the caller of a request, after `authenticate`. */
export function callerOf(response: Response): Caller {
  const { caller }: { readonly caller?: Caller } = response.locals;
  if (caller === undefined) throw new Error('this route is mounted before authenticate()');
  return caller;
}
