import { RequestError } from '../receiver/request-error.js';
import type { SenderGate } from '../receiver/sender-gate.js';
import { ConsumeError } from '../record/record-consumer.js';
import { StoreError } from '../store/store-error.js';
import type { Admission, Authenticator } from './authenticator.js';
import { may } from './permissions.js';

/** When to come back while tokens cannot be looked up, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Lets those send telemetry whose token has `telemetry:write`. */
export class TokenGate implements SenderGate {
  constructor(private readonly authenticator: Pick<Authenticator, 'admit'>) {}

  async admit(authorization: string | undefined, address: string): Promise<void> {
    const admission = await this.find(authorization, address);
    switch (admission.kind) {
      case 'admitted':
        if (may(admission.caller, 'telemetry:write')) return;
        throw new RequestError(
          'forbidden',
          `This token may not send telemetry: it is ${admission.caller.permission}, and telemetry:write is not part of it.`,
        );
      case 'missing':
        throw new RequestError(
          'unauthenticated',
          'A token is needed here: set OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer <token>" at the sender.',
        );
      case 'invalid':
        throw new RequestError('unauthenticated', 'Invalid token.');
      case 'limited':
        throw new RequestError('too_many_tries', 'Too many requests with tokens that are not good came from there.');
    }
  }

  private async find(authorization: string | undefined, address: string): Promise<Admission> {
    try {
      return await this.authenticator.admit(authorization, address);
    } catch (cause) {
      if (!(cause instanceof StoreError)) throw cause;
      throw new ConsumeError('unavailable', 'Tokens cannot be looked up just now.', RETRY_AFTER_MS, { cause });
    }
  }
}
