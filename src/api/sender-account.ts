import { ConsumeError } from '../record/record-batch.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { StoreError } from '../storage/store-error.js';
import type { Caller } from './caller.js';

/** When to come back while tokens cannot be looked up, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** The account whose a sender's telemetry is, as records carry it: `null` for the first. */
export function senderAccountOf({ accountId }: Pick<Caller, 'accountId'>): number | null {
  return accountId === FIRST_ACCOUNT_ID ? null : accountId;
}

/** Looks a sender's token up. @throws ConsumeError `unavailable` while that is not possible */
export async function lookUp<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause;
    throw new ConsumeError('unavailable', 'Tokens cannot be looked up at the moment.', RETRY_AFTER_MS, { cause });
  }
}
