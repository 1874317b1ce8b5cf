import type { SenderGate } from '../core/sender-gate.js';
import { RequestError } from '../otlp/refusal.js';
import { ConsumeError } from '../record/record-batch.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { StoreError } from '../storage/store-error.js';
import type { Authenticator } from './authenticator.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

/** Lets those send telemetry whose token has `telemetry:write`, each for the token's account. */
export class TokenGate implements SenderGate {
  constructor(private readonly authenticator: Pick<Authenticator, 'admit'>) {}

  async admit(authorization: string | undefined, address: string): Promise<number | null> {
    const admission = await lookUp(() => this.authenticator.admit(authorization, address));
    switch (admission.kind) {
      case 'admitted':
        if (may(admission.caller, 'telemetry:write')) return senderAccountOf(admission.caller);
        throw new RequestError(
          'forbidden',
          `This token is not allowed to send telemetry: its permission set ${admission.caller.permission} does not include telemetry:write.`,
        );
      case 'missing':
        throw new RequestError(
          'unauthenticated',
          'A token is needed here: set OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer <token>" at the sender.',
        );
      case 'invalid':
        throw new RequestError('unauthenticated', 'Invalid token.');
      case 'limited':
        throw new RequestError('too_many_tries', 'Too many requests with invalid tokens from this address.');
    }
  }
}

/**
 * Lets everybody send telemetry. A valid token with `telemetry:write` sends for its account, all others for the
 * first one: an invalid token counts as none, since none is required.
 */
export class OpenGate implements SenderGate {
  constructor(private readonly authenticator: Pick<Authenticator, 'recognize'>) {}

  admit(authorization: string | undefined): Promise<number | null> | null {
    return authorization === undefined ? null : this.accountOf(authorization);
  }

  private async accountOf(authorization: string): Promise<number | null> {
    const caller = await lookUp(() => this.authenticator.recognize(authorization));
    return caller !== undefined && may(caller, 'telemetry:write') ? senderAccountOf(caller) : null;
  }
}

/** When to come back while tokens cannot be looked up, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Returns the account whose a sender's telemetry is, as records carry it: `null` for the first. */
function senderAccountOf({ accountId }: Pick<Caller, 'accountId'>): number | null {
  return accountId === FIRST_ACCOUNT_ID ? null : accountId;
}

/** Looks a sender's token up. @throws ConsumeError `unavailable` while that is not possible */
async function lookUp<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause;
    throw new ConsumeError('unavailable', 'Tokens cannot be looked up at the moment.', RETRY_AFTER_MS, { cause });
  }
}
