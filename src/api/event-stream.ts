import type { Response } from 'express';
import { writeOut } from './own/write-out.js';

/** When a client comes again after the connection was lost, in milliseconds. */
const RETRY_MS = 2_000;

/** The longest time without a message in a stream of server-sent events, in milliseconds: proxies close what is silent for longer. */
export const HEARTBEAT_MS = 15_000;

/** Begins an answer of server-sent events, which nothing on the way is to keep, compress or hold back. */
export async function beginEventStream(response: Response): Promise<void> {
  response.status(200).set({
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store, no-transform',
    'X-Content-Type-Options': 'nosniff',
    'X-Accel-Buffering': 'no',
  });
  await writeOut(response, `retry: ${RETRY_MS}\n\n`);
}
