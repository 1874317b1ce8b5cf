import { once } from 'node:events';
import type { Response } from 'express';

/** When a client comes again after the connection was lost, in milliseconds. */
const RETRY_MS = 2_000;

/** The longest time without a message in a stream of server-sent events, in milliseconds: proxies close what is silent for longer. */
export const HEARTBEAT_MS = 15_000;

/** Begins an answer of server-sent events, which nothing on the way is to cache, compress or buffer. */
export async function beginEventStream(response: Response): Promise<void> {
  response.status(200).set({
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store, no-transform',
    'X-Content-Type-Options': 'nosniff',
    'X-Accel-Buffering': 'no',
  });
  await writeOut(response, `retry: ${RETRY_MS}\n\n`);
}

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
