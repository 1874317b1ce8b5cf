import type { SenderGate } from '../core/sender-gate.js';
import type { Authenticator } from './authenticator.js';
import { may } from './permissions.js';
import { lookUp, senderAccountOf } from './sender-account.js';

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
