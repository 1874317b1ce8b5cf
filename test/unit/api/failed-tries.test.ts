import { describe, expect, it } from 'vitest';
import { FailedTries } from '../../../src/api/failed-tries.js';
import { FakeClock } from '../../fake/fake-clock.js';

function taken(tries: FailedTries, address: string, count: number): number {
  return Array.from({ length: count }, () => tries.take(address)).filter((waitMs) => waitMs === null).length;
}

describe('failed tries', () => {
  it('are 20 at once, then one every three seconds', () => {
    const clock = new FakeClock();
    const tries = new FailedTries(clock);
    expect(taken(tries, '10.0.0.1', 30)).toBe(20);
    expect(tries.take('10.0.0.1')).toBe(3_000);
    clock.advance(1_000);
    expect(tries.take('10.0.0.1')).toBe(2_000);
    clock.advance(2_000);
    expect(taken(tries, '10.0.0.1', 5)).toBe(1);
    clock.advance(3_600_000);
    expect(taken(tries, '10.0.0.1', 30)).toBe(20);
  });

  it('of one address cost no other anything, and those that did not fail cost nothing', () => {
    const tries = new FailedTries(new FakeClock());
    taken(tries, '10.0.0.1', 20);
    expect(tries.take('10.0.0.2')).toBeNull();
    for (let index = 0; index < 50; index++) {
      expect(tries.take('10.0.0.3')).toBeNull();
      tries.giveBack('10.0.0.3');
    }
  });

  it('count one IPv6 network, and one IPv4 address however it is spelt, as one', () => {
    const tries = new FailedTries(new FakeClock());
    taken(tries, '2001:db8:0:1::5', 20);
    expect(tries.take('2001:db8:0:1:ffff::9')).not.toBeNull();
    expect(tries.take('2001:db8:0:2::5')).toBeNull();
    expect(tries.take('::1')).toBeNull();
    taken(tries, '::ffff:10.0.0.1', 20);
    expect(tries.take('10.0.0.1')).not.toBeNull();
  });

  it('are remembered of ten thousand addresses', () => {
    const tries = new FailedTries(new FakeClock());
    taken(tries, 'first', 20);
    for (let index = 0; index < 9_999; index++) tries.take(`address ${index}`);
    expect(tries.take('first')).not.toBeNull();
    tries.take('one more');
    expect(tries.take('first')).toBeNull();
  });
});
