import { isIPv6 } from 'node:net';
import type { Clock } from '../component/clock.js';

/** So many tries an address may fail one after the other; then one more with every `TRY_BACK_MS`. */
const MAX_TRIES = 20;
/** In milliseconds. */
const TRY_BACK_MS = 3_000;
/** Addresses remembered; of more than these, who tried longest ago is forgotten. Some 2 MB. */
const MAX_ADDRESSES = 10_000;

interface Tries {
  /** Those left at `atMs`; they grow with time. */
  readonly left: number;
  /** In monotonic milliseconds. */
  readonly atMs: number;
}

/**
 * Limits failed tries by address: 20 at once and 20 a minute afterwards. The addresses of one IPv6 network (64 bits) count
 * as one, because whoever has one of them has them all.
 */
export class FailedTries {
  /** In order of the last try. */
  private readonly byAddress = new Map<string, Tries>();

  constructor(private readonly clock: Clock) {}

  /**
   * Takes one try from an address before it is known whether it fails: many at once get no more than one after the other.
   * @returns how long to wait in milliseconds where it has none left; then nothing is taken.
   */
  take(address: string): number | null {
    const left = this.leftOf(keyOf(address));
    if (left < 1) return Math.ceil((1 - left) * TRY_BACK_MS);
    this.put(keyOf(address), left - 1);
    return null;
  }

  /** The try that was taken did not fail. */
  giveBack(address: string): void {
    const key = keyOf(address);
    const left = this.leftOf(key) + 1;
    if (left >= MAX_TRIES) this.byAddress.delete(key);
    else this.put(key, left);
  }

  private leftOf(key: string): number {
    const tries = this.byAddress.get(key);
    if (tries === undefined) return MAX_TRIES;
    return Math.min(MAX_TRIES, tries.left + (this.clock.monotonicMs() - tries.atMs) / TRY_BACK_MS);
  }

  private put(key: string, left: number): void {
    this.byAddress.delete(key);
    for (const oldest of this.byAddress.keys()) {
      if (this.byAddress.size < MAX_ADDRESSES) break;
      this.byAddress.delete(oldest);
    }
    this.byAddress.set(key, { left, atMs: this.clock.monotonicMs() });
  }
}

function keyOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIPv6(plain) ? networkOf(plain) : plain;
}

/** The first four of an IPv6 address's eight groups. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array<string>(Math.max(0, zeros)).fill('0'), ...back].slice(0, 4).join(':');
}
