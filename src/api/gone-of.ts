import type { Response } from 'express';

/** Aborts when the client has gone. */
export function goneOf(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}
