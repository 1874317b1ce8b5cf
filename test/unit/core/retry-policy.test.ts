import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../src/core/retry-policy.js';

const always = (value: number) => new RetryPolicy(DEFAULT_RETRY_POLICY, () => value);

describe('the retry policy', () => {
  it('doubles the bound with each failure up to a minute', () => {
    const bounds = [1, 2, 3, 6, 7, 8, 1_000].map((failed) => always(0.999_999).delayMs(failed, null));
    expect(bounds).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('spreads waits over the whole of the bound, but never waits for nothing', () => {
    expect(always(0.5).delayMs(4, null)).toBe(4_000);
    expect(always(0).delayMs(4, null)).toBe(100);
  });

  it('waits at least as long as the receiver asks, and no longer than ten minutes', () => {
    expect(always(0).delayMs(1, 30_000)).toBe(30_000);
    expect(always(0.5).delayMs(9, 30_000)).toBe(30_500);
    expect(always(0).delayMs(1, 86_400_000)).toBe(600_000);
  });

  it('backs off by itself when the receiver says "at once"', () => {
    expect(always(0.5).delayMs(1, 0)).toBe(500);
  });
});
