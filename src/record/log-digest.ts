import { randomInt } from 'node:crypto';
import { spread } from '../core/bytes.js';
import type { LogRecord } from './telemetry-record.js';

/** A digest of 64 bits in halves. It is seeded at each start of a thread, so it must not be stored or passed on. */
export type Digest = readonly [high: number, low: number];

/** The fields that identify a log record, since OTLP gives it no id. */
export type Digested = Pick<LogRecord, 'spanId' | 'timeUnixNano' | 'eventType' | 'body'>;

/** Returns the digest of a log record's span, time, event type and body. */
export function logDigest({ spanId, timeUnixNano, eventType, body }: Digested): Digest {
  return digestOf(`${spanId}|${timeUnixNano}|${eventType}|${body}`);
}

/** Combines a log record's digest with its event id, so that a sender that gives all records the same id loses none. */
export function eventDigest([high, low]: Digest, eventId: string): Digest {
  return digestOf(`${high}|${low}|${eventId}`);
}

function digestOf(content: string): Digest {
  const { buffer, byteOffset, byteLength } = Buffer.from(content);
  const digester = new Digester();
  digester.read(new DataView(buffer, byteOffset, byteLength), 0, byteLength);
  return [digester.high, digester.low];
}

const SEEDS = [randomInt(2 ** 32) | 0, randomInt(2 ** 32) | 0] as const;

/**
 * Computes the digest of the UTF-8 text that `logDigest` assembles, in two lanes of 32 bits that are mixed like the four of MurmurHash3. Two different records have the same digest with a probability
 * of 1 in 2^64.
 */
export class Digester {
  // Signed integers: V8 allocates an object for a larger number.
  high = 0;
  low = 0;

  read(view: DataView, start: number, end: number): void {
    const length = end - start;
    let [high, low] = SEEDS;
    let at = start;
    for (; at + 8 <= end; at += 8) {
      high = mixHigh(high, low, view.getInt32(at, true));
      low = mixLow(low, high, view.getInt32(at + 4, true));
    }
    let rest = 0;
    for (let shift = 0; at < end; at++, shift += 8) {
      rest |= view.getUint8(at) << shift;
      if (shift < 24) continue;
      high = mixHigh(high, low, rest);
      rest = 0;
      shift = -8;
    }
    low = mixLow(low, high, rest) ^ length;
    high = ((high ^ length) + low) | 0;
    low = spread((low + high) | 0);
    this.high = (spread(high) + low) | 0;
    this.low = (low + this.high) | 0;
  }
}

function mixHigh(high: number, low: number, word: number): number {
  const mixed = high ^ Math.imul(turned(Math.imul(word, 0x239b961b), 15), 0xab0e9789);
  return (Math.imul((turned(mixed, 19) + low) | 0, 5) + 0x561ccd1b) | 0;
}

function mixLow(low: number, high: number, word: number): number {
  const mixed = low ^ Math.imul(turned(Math.imul(word, 0xab0e9789), 16), 0x38b34ae5);
  return (Math.imul((turned(mixed, 17) + high) | 0, 5) + 0x0bcaa747) | 0;
}

function turned(bits: number, count: number): number {
  return (bits << count) | (bits >>> (32 - count));
}
