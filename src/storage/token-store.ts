import type { PermissionSet } from './permission-set.js';

/** A new token, with everything but its value. */
export interface NewToken {
  readonly accountId: number;
  /** What it is for, in a person's words. */
  readonly name: string;
  /** Whose it is; `null` for a service token. */
  readonly userName: string | null;
  readonly permission: PermissionSet;
  /** SHA-256 of the token in lowercase hex; the token itself is not stored. */
  readonly hash: string;
  readonly createdUnixMs: number;
  /** From then on it is refused; `null` for never. */
  readonly expiresUnixMs: number | null;
}

/** A stored token. */
export interface TokenRow extends NewToken {
  readonly id: number;
  /** Since when it is refused; `null` while it is not. */
  readonly revokedUnixMs: number | null;
  /** When it was last let in, to `noteUse`'s precision; `null` for never. */
  readonly usedUnixMs: number | null;
}

/** The outcome of revoking a token. */
export type RevokeResult =
  | { readonly kind: 'revoked' | 'alreadyRevoked'; readonly token: TokenRow }
  | { readonly kind: 'unknown' };

/** Rows of tokens. */
export interface TokenStore {
  /** @throws StoreError */
  add(token: NewToken): Promise<TokenRow>;
  /** Whether there has never been a token. */
  isEmpty(): Promise<boolean>;
  /** Adds it where there has never been a token; of several programs at once, one does. `undefined` where there was one. */
  addFirst(token: NewToken): Promise<TokenRow | undefined>;
  /**
   * A token that is good at that time. One that is expired or revoked is as if it had never been, in the same steps: no
   * row of it comes out of the database, which would take longer.
   */
  findGood(hash: string, nowUnixMs: number): Promise<TokenRow | undefined>;
  /** All of them, by id; expired and revoked ones too. */
  list(): Promise<readonly TokenRow[]>;
  revoke(id: number, nowUnixMs: number): Promise<RevokeResult>;
  noteUse(id: number, nowUnixMs: number): Promise<void>;
}
