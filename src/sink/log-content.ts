import { createHash } from 'node:crypto';
import type { LogRecord } from '../record/telemetry-record.js';

/** What two log records have in common that are equal: OTLP gives them no id. */
export function logContent({ spanId, timeUnixNano, eventType, body }: LogRecord): string {
  return `${spanId}|${timeUnixNano}|${eventType}|${body}`;
}

/** A SHA-1, of which tables of contents keep the first 64 bits. */
export function contentDigest(content: string): Buffer {
  return createHash('sha1').update(content).digest();
}
