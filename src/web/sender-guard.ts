import type { RequestHandler } from 'express';
import { refusalOf } from '../receiver/refusal.js';
import type { SenderGate } from '../receiver/sender-gate.js';

/** Stands before the API of runs, where telemetry needs a token too; answers as that API does. */
export function senderGuard(gate: SenderGate): RequestHandler {
  return async (request, response, next) => {
    try {
      await gate.admit(request.headers.authorization, request.socket.remoteAddress ?? '');
    } catch (error) {
      const { status, reason, message, headers } = refusalOf(error);
      response
        .status(status)
        .set(headers)
        .json({ error: { code: reason, message } });
      return;
    }
    next();
  };
}
