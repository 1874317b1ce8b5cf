import { FIRST_ACCOUNT_ID } from '../store/account-store.js';
import type { PermissionSet } from '../store/permission-set.js';

/** Who is asking. */
export interface Caller {
  /** Nothing of another account is shown to them or changed by them. */
  readonly accountId: number;
  /** 0 for who came without a token to an address that is open to senders. */
  readonly tokenId: number;
  /** `sender`: came without a token to an address that is open to senders. */
  readonly permission: PermissionSet | 'sender';
}

/** Who came without a token to an address that takes telemetry without one. */
export const SENDER: Caller = { accountId: FIRST_ACCOUNT_ID, tokenId: 0, permission: 'sender' };
