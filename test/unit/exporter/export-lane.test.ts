import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../src/delivery/retry-policy.js';
import { ExportLane } from '../../../src/exporter/export-lane.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

function openLane() {
  const clock = new FakeClock();
  const policy = new RetryPolicy(DEFAULT_RETRY_POLICY, () => 1);
  let readyCount = 0;
  const deps = { clock, logger: new RecordingLogger(), policy };
  const lane = new ExportLane('traces', true, 'otlp', deps, () => {
    readyCount += 1;
  });
  const fail = (retryAfterMs: number | null = null) =>
    lane.settle({ kind: 'retryable', status: 503, retryAfterMs, message: '' }, 1);
  return { clock, lane, fail, ready: () => readyCount };
}

describe('a lane to a destination that takes nothing now', () => {
  it('is ready again after the wait, also when the timer fires a fraction of a millisecond early', () => {
    const { clock, lane, fail, ready } = openLane();
    clock.earlyMs = 0.5;
    fail();
    expect(lane.state).toBe('waiting');
    clock.advance(1_000);
    expect({ state: lane.state, ready: ready() }).toEqual({ state: 'ready', ready: 1 });
  });

  it('waits for the latest of several failures, once', () => {
    const { clock, lane, fail, ready } = openLane();
    fail();
    fail(10_000);
    clock.advance(9_000);
    expect(lane.state).toBe('waiting');
    clock.advance(5_000);
    expect({ state: lane.state, ready: ready() }).toEqual({ state: 'ready', ready: 1 });
  });
});
