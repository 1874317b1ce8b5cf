import { isIPv6 } from 'node:net';
import type { Clock } from '../core/clock.js';

/** So many tries an address may fail one after the other; then one more with every `TRY_BACK_MS`. */
const MAX_TRIES = 20;
/** In milliseconds. */
const TRY_BACK_MS = 3_000;
/** Maximum number of remembered addresses; beyond, the least recent one is forgotten. Some 2 MB. */
const MAX_ADDRESSES = 10_000;

/**
 * Limits failed attempts by address: 20 at once and 20 a minute afterwards. The addresses of one IPv6 network (64 bits) count
 * as one, because a client usually has all of them.
 */
export class FailedTries {
  /** When an address has all its tries again, in monotonic milliseconds; in order of the last try. */
  private readonly freeAtMs = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /**
   * Takes one attempt of an address before its result is known: concurrent requests get no more than sequential ones.
   * @returns how long to wait in milliseconds if none is left; then nothing is taken.
   */
  take(address: string): number | null {
    const key = keyOf(address);
    const owedMs = this.owedBy(key) + TRY_BACK_MS;
    if (owedMs > MAX_TRIES * TRY_BACK_MS) return Math.ceil(owedMs - MAX_TRIES * TRY_BACK_MS);
    this.owe(key, owedMs);
    return null;
  }

  /** The try that was taken did not fail. */
  giveBack(address: string): void {
    const key = keyOf(address);
    this.owe(key, this.owedBy(key) - TRY_BACK_MS);
  }

  /** Returns how long until an address has all its tries again, in milliseconds. */
  private owedBy(key: string): number {
    return Math.max(0, (this.freeAtMs.get(key) ?? 0) - this.clock.monotonicMs());
  }

  private owe(key: string, owedMs: number): void {
    this.freeAtMs.delete(key);
    if (owedMs <= 0) return;
    for (const oldest of this.freeAtMs.keys()) {
      if (this.freeAtMs.size < MAX_ADDRESSES) break;
      this.freeAtMs.delete(oldest);
    }
    this.freeAtMs.set(key, this.clock.monotonicMs() + owedMs);
  }
}

function keyOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIPv6(plain) ? networkOf(plain) : plain;
}

/** Returns the first four of an IPv6 address's eight groups. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array<string>(Math.max(0, zeros)).fill('0'), ...back].slice(0, 4).join(':');
}
