import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../component/clock.js';
import type { TokenStore } from '../store/token-store.js';
import type { Caller } from './caller.js';
import { hashOf } from './token-secret.js';

/** Who came. `invalid` is every token that is not good: unknown, malformed, expired and revoked look the same. */
export type Admission =
  | { readonly kind: 'admitted'; readonly caller: Caller }
  | { readonly kind: 'missing' | 'invalid' };

/** What an authenticator works with. */
export interface AuthenticatorDeps {
  readonly tokens: TokenStore;
  readonly clock: Clock;
}

/** Finds out from a request's `Authorization` whose token it has. */
export class Authenticator {
  constructor(private readonly deps: AuthenticatorDeps) {}

  /**
   * @param authorization `Token …` or `Bearer …`
   * @throws StoreError
   */
  async admit(authorization: string | undefined): Promise<Admission> {
    if (authorization === undefined) return { kind: 'missing' };
    const { tokens, clock } = this.deps;
    const hash = hashOf(tokenIn(authorization));
    const row = await tokens.findByHash(hash.toString('hex'));
    const isSame = timingSafeEqual(hash, Buffer.from(row?.hash ?? NO_HASH, 'hex'));
    const isExpired = (row?.expiresUnixMs ?? Number.POSITIVE_INFINITY) <= clock.nowUnixMs();
    const isRevoked = (row?.revokedUnixMs ?? null) !== null;
    if (row === undefined || !isSame || isExpired || isRevoked) return { kind: 'invalid' };
    return { kind: 'admitted', caller: { accountId: row.accountId, tokenId: row.id, permission: row.permission } };
  }
}

const NO_HASH = '0'.repeat(64);

/** Whatever it is, it is hashed and looked up: what is malformed takes as long as what is unknown. */
function tokenIn(authorization: string): string {
  return /^(?:token|bearer) +(.*)$/i.exec(authorization)?.[1]?.trim() ?? '';
}
