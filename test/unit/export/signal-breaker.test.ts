import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../src/core/clock.js';
import { SignalBreaker } from '../../../src/export/signal-breaker.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

function openBreaker() {
  const clock = new FakeClock();
  const policy = new RetryPolicy(DEFAULT_RETRY_POLICY, () => 1);
  let readyCount = 0;
  const deps = { clock, logger: new RecordingLogger(), policy };
  const breaker = new SignalBreaker('traces', true, 'otlp', deps, () => {
    readyCount += 1;
  });
  const fail = (retryAfterMs: number | null = null) =>
    breaker.settle({ kind: 'retryable', status: 503, retryAfterMs, message: '' }, 1);
  const failOften = (retryAfterMs: number | null = null) => {
    for (let attempt = 1; attempt < 5; attempt += 1) fail();
    return fail(retryAfterMs);
  };
  const accept = () => breaker.settle({ kind: 'accepted', status: 200, rejectedCount: 0, message: '' }, 1);
  return { clock, breaker, logger: deps.logger, fail, failOften, accept, ready: () => readyCount };
}

describe('a breaker before a destination that takes nothing now', () => {
  it('pauses after five failures in a row, and gives one request a chance when the pause is over', () => {
    const { clock, breaker, fail, accept } = openBreaker();
    expect([fail(), fail(), fail(), fail(), fail()]).toEqual(['retry', 'retry', 'retry', 'retry', 'paused']);
    expect({ state: breaker.state, isProbing: breaker.isProbing }).toEqual({ state: 'waiting', isProbing: true });
    clock.advance(1_000);
    expect({ state: breaker.state, isProbing: breaker.isProbing }).toEqual({ state: 'ready', isProbing: true });
    accept();
    expect(breaker.isProbing).toBe(false);
  });

  it('pauses ever longer, but not because of requests that were under way when the pause began', () => {
    const { clock, breaker, fail, failOften } = openBreaker();
    failOften();
    expect([fail(), fail(), fail()]).toEqual(['paused', 'paused', 'paused']);
    clock.advance(1_000);
    expect(breaker.state).toBe('ready');
    expect(fail()).toBe('paused');
    clock.advance(1_999);
    expect(breaker.state).toBe('waiting');
    clock.advance(1);
    expect(breaker.state).toBe('ready');
  });

  it('pauses at once where it is asked to wait', () => {
    const { breaker, clock } = openBreaker();
    expect(breaker.settle({ kind: 'retryable', status: 429, retryAfterMs: null, message: '' }, 1)).toBe('paused');
    clock.advance(1_000);
    expect(breaker.settle({ kind: 'retryable', status: 503, retryAfterMs: 7_000, message: '' }, 1)).toBe('paused');
    clock.advance(7_999);
    expect(breaker.state).toBe('waiting');
    clock.advance(1);
    expect(breaker.state).toBe('ready');
  });

  it('does not pause for failures between successes', () => {
    const { breaker, fail, accept, logger } = openBreaker();
    for (let request = 0; request < 100; request += 1) {
      expect([fail(), fail(), fail(), fail()]).toEqual(['retry', 'retry', 'retry', 'retry']);
      expect(accept()).toBe('done');
    }
    expect({ state: breaker.state, failed: breaker.status.failedAttemptCount }).toEqual({
      state: 'ready',
      failed: 400,
    });
    expect(logger.lines.map((line) => line.message)).toEqual([
      'a request to the destination failed; retrying, further failures are only counted',
    ]);
  });

  it('is ready again after the wait, also when the timer fires a fraction of a millisecond early', () => {
    const { clock, breaker, failOften, ready } = openBreaker();
    clock.earlyMs = 0.5;
    failOften();
    expect(breaker.state).toBe('waiting');
    clock.advance(1_000);
    expect({ state: breaker.state, ready: ready() }).toEqual({ state: 'ready', ready: 1 });
  });

  it('waits for the latest of several pauses, once', () => {
    const { clock, breaker, fail, failOften, ready } = openBreaker();
    failOften();
    fail(10_000);
    clock.advance(9_000);
    expect(breaker.state).toBe('waiting');
    clock.advance(5_000);
    expect({ state: breaker.state, ready: ready() }).toEqual({ state: 'ready', ready: 1 });
  });
});
