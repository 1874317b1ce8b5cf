import express, { type RequestHandler } from 'express';

const MAX_BODY_BYTES = 256 * 1024;

/** Parses bodies of requests for webhooks. Clients send them without a type as well. */
export function webhookBody(): RequestHandler {
  return express.json({ type: () => true, limit: MAX_BODY_BYTES, strict: false });
}
