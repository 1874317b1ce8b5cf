import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { PermissionSet } from '../storage/state-tables.js';

/** The caller of a request. */
export interface Caller {
  /** Nothing of another account is shown to them or changed by them. */
  readonly accountId: number;
  /** 0 for an anonymous sender. */
  readonly tokenId: number;
  /** `sender`: anonymous, on an address that takes telemetry without a token. */
  readonly permission: PermissionSet | 'sender';
  /** Whether there is no other account or user, so that pages need not say which this is. Default: false. */
  readonly isAlone?: boolean;
}

/** An anonymous sender, on an address that takes telemetry without a token (a loopback address, by default). */
export const SENDER: Caller = { accountId: FIRST_ACCOUNT_ID, tokenId: 0, permission: 'sender' };
