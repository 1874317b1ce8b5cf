import { once } from 'node:events';
import type { Response } from 'express';

/** Writes a part of an answer, and waits where whoever reads it is behind: nothing piles up for a slow client. */
export async function writeOut(response: Response, text: string): Promise<void> {
  if (text === '' || response.destroyed || response.write(text)) return;
  const closed = new AbortController();
  const onClose = () => closed.abort();
  response.once('close', onClose);
  // A client that goes away is no error: whoever writes looks at `destroyed`.
  await once(response, 'drain', { signal: closed.signal }).catch(() => {});
  response.off('close', onClose);
}
