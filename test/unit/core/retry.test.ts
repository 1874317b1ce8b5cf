import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, parseRetryAfterMs, RetryPolicy, retry } from '../../../src/core/clock.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { untilTurned } from '../../tool/until.js';

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

describe('retry', () => {
  const never = new AbortController().signal;
  /** Fails so many times, each time with another error. */
  function failing(times: number) {
    const state = { attempts: 0 };
    const attempt = async () => {
      state.attempts += 1;
      if (state.attempts <= times) throw new Error(`failure ${state.attempts}`);
      return 'done';
    };
    return { state, attempt };
  }

  it('attempts again after each wait until it succeeds', async () => {
    const clock = new FakeClock();
    const { state, attempt } = failing(2);
    const done = retry(attempt, { clock, signal: never, delayMs: (_error, failed) => 100 * failed });
    for (const waitMs of [100, 200]) {
      await untilTurned(() => clock.nextTimerMs === waitMs);
      clock.advance(waitMs);
    }
    expect(await done).toBe('done');
    expect(state.attempts).toBe(3);
  });

  it('throws the last failure after so many attempts, or where another would not help', async () => {
    const rules = { clock: new FakeClock(), signal: never };
    const once = failing(9);
    await expect(retry(once.attempt, { ...rules, delayMs: () => null })).rejects.toThrow('failure 1');
    await expect(retry(once.attempt, { ...rules, maxAttempts: 1, delayMs: () => 5 })).rejects.toThrow('failure 2');
  });

  it('throws the failure that comes after its time', async () => {
    const clock = new FakeClock();
    const { attempt } = failing(9);
    const late = expect(retry(attempt, { clock, signal: never, maxElapsedMs: 150, delayMs: () => 100 })).rejects;
    const failed = late.toThrow('failure 3');
    for (const _wait of [1, 2]) {
      await untilTurned(() => clock.nextTimerMs === 100);
      clock.advance(100);
    }
    await failed;
  });

  it('ends its wait when it is stopped, without another attempt', async () => {
    const [clock, stop] = [new FakeClock(), new AbortController()];
    const { state, attempt } = failing(9);
    const stopped = expect(retry(attempt, { clock, signal: stop.signal, delayMs: () => 100 })).rejects;
    const failed = stopped.toThrow('stopped');
    await untilTurned(() => clock.nextTimerMs === 100);
    stop.abort(new Error('stopped'));
    await failed;
    expect(state.attempts).toBe(1);
  });
});

const NOW = Date.UTC(2026, 0, 1);

describe('Retry-After', () => {
  it('is read as seconds', () => {
    expect(parseRetryAfterMs('120', NOW)).toBe(120_000);
    expect(parseRetryAfterMs('0', NOW)).toBe(0);
  });

  it('is read as a date, and one that has passed as now', () => {
    expect(parseRetryAfterMs(new Date(NOW + 5_000).toUTCString(), NOW)).toBe(5_000);
    expect(parseRetryAfterMs(new Date(NOW - 5_000).toUTCString(), NOW)).toBe(0);
  });

  it.each([undefined, '', 'soon', '-5', '1.5', '99999999999999999999'])('is none when it is %o', (header) => {
    expect(parseRetryAfterMs(header, NOW)).toBeNull();
  });
});
