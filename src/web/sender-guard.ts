import type { RequestHandler, Response } from 'express';
import { refusalOf } from '../receiver/refusal.js';
import type { SenderGate } from '../receiver/sender-gate.js';

/** Stands before the API of runs: who may send telemetry may tell of runs. Answers as that API does. */
export function senderGuard(gate: SenderGate): RequestHandler {
  return async (request, response, next) => {
    try {
      response.locals.senderAccountId = await gate.admit(
        request.headers.authorization,
        request.socket.remoteAddress ?? '',
      );
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

/** The account that whoever asks tells of runs for, behind `senderGuard`; `null` for the first. */
export function senderAccountIn(response: Response): number | null {
  const { senderAccountId }: { readonly senderAccountId?: number | null } = response.locals;
  return senderAccountId ?? null;
}
