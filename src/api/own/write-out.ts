import { once } from 'node:events';
import type { Response } from 'express';

/** Writes a part of a response, and waits while the client is behind: nothing accumulates for a slow client. */
export async function writeOut(response: Response, text: string): Promise<void> {
  if (text === '' || response.destroyed || response.write(text)) return;
  const closed = new AbortController();
  const onClose = () => closed.abort();
  response.once('close', onClose);
  // A client that disconnects is not an error: the writer checks `destroyed`.
  await once(response, 'drain', { signal: closed.signal }).catch(() => {});
  response.off('close', onClose);
}
