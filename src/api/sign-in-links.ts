import type { Clock } from '../core/clock.js';
import { FIRST_ACCOUNT_ID, type TokenStore } from '../storage/account-store.js';
import { hashOf, newSecret } from './authenticator.js';
import type { FailedTries } from './failed-tries.js';

/** How long a link can be used, in milliseconds: ten minutes. */
const LINK_MS = 600_000;
/** How long the browser that used it stays signed in, in milliseconds: a week. */
const SIGNED_IN_MS = 7 * 86_400_000;

/**
 * Makes a link that signs a browser in once, within ten minutes. Whoever can write the state can make one, as they can make a token.
 * @param to the page to go to afterwards: a path of the server
 * @returns its path and query, with the secret: it is shown to the caller, and stands in no log
 * @throws StoreError
 */
export async function makeSignInLink(tokens: Pick<TokenStore, 'addLink'>, clock: Clock, to = '/'): Promise<string> {
  const secret = newSecret();
  const nowUnixMs = clock.nowUnixMs();
  await tokens.addLink({
    accountId: FIRST_ACCOUNT_ID,
    name: 'a browser, by a link',
    userName: null,
    permission: 'account_admin',
    hash: hashOf(secret).toString('hex'),
    createdUnixMs: nowUnixMs,
    expiresUnixMs: nowUnixMs + LINK_MS,
  });
  return `/sign-in?${new URLSearchParams({ link: secret, ...(to !== '/' && { to }) })}`;
}

/** What became of a link. `spent` is every other one: unknown, used and expired ones look the same. */
export type LinkResult =
  | { readonly kind: 'signedIn'; readonly token: string }
  | { readonly kind: 'spent' }
  /** Too many tries from that address have failed. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

/** What links are exchanged with. */
export interface SignInLinksDeps {
  readonly tokens: Pick<TokenStore, 'exchangeLink'>;
  /** Shared with tokens: a guess is a guess. */
  readonly tries: FailedTries;
  readonly clock: Clock;
}

/** Exchanges links for tokens. */
export class SignInLinks {
  constructor(private readonly deps: SignInLinksDeps) {}

  /**
   * Uses a link up: of several requests with it, one gets a token, which is good for a week.
   * @param secret of the link
   * @param address of the sender; an IP address
   * @throws StoreError
   */
  async exchange(secret: string, address: string): Promise<LinkResult> {
    const { tokens, tries, clock } = this.deps;
    const retryAfterMs = tries.take(address);
    if (retryAfterMs !== null) return { kind: 'limited', retryAfterMs };
    const token = newSecret();
    const nowUnixMs = clock.nowUnixMs();
    const isGood = await tokens.exchangeLink(hashOf(secret).toString('hex'), {
      hash: hashOf(token).toString('hex'),
      expiresUnixMs: nowUnixMs + SIGNED_IN_MS,
      nowUnixMs,
    });
    if (!isGood) return { kind: 'spent' };
    tries.giveBack(address);
    return { kind: 'signedIn', token };
  }
}
