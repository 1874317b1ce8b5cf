import type { SenderGate } from '../core/sender-gate.js';
import { RequestError } from '../otlp/refusal.js';
import type { Authenticator } from './authenticator.js';
import { may } from './permissions.js';
import { lookUp, senderAccountOf } from './sender-account.js';

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
