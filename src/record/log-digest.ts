import { hash } from 'node:crypto';
import type { LogRecord } from './telemetry-record.js';

/** The first 64 bits of a SHA-1, in halves. */
export type Digest = readonly [high: number, low: number];

/** What tells a log record from others, which OTLP gives no id: its span, time, event type and body. */
export function logDigest({ spanId, timeUnixNano, eventType, body }: LogRecord): Digest {
  return digestOf(`${spanId}|${timeUnixNano}|${eventType}|${body}`);
}

/** The same with an event id: a sender that gives all its records one id loses none of them. */
export function eventDigest([high, low]: Digest, eventId: string): Digest {
  return digestOf(`${high}|${low}|${eventId}`);
}

/** @param content as `logDigest` puts it together, as text or in UTF-8 */
export function digestOf(content: string | Uint8Array): Digest {
  const digest = hash('sha1', content, 'buffer');
  return [digest.readUInt32LE(0), digest.readUInt32LE(4)];
}
