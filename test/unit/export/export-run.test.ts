import { describe, expect, it } from 'vitest';
import { AppendTimes } from '../../../src/export/export-run.js';

const SECOND = 1_000;

describe('the times of appends', () => {
  it('know when a byte came at the earliest, and what came before a time for certain', () => {
    const times = new AppendTimes();
    times.note(100, 10 * SECOND);
    times.note(300, 20 * SECOND);
    expect([times.at(0), times.at(99), times.at(100)]).toEqual([10 * SECOND, 10 * SECOND, 20 * SECOND]);
    expect([9, 10, 19, 20].map((second) => times.before(second * SECOND))).toEqual([0, 100, 100, 300]);
  });

  it('take appends of one second together', () => {
    const times = new AppendTimes();
    times.note(100, 0);
    times.note(200, 900);
    expect([times.before(899), times.before(900), times.at(150)]).toEqual([0, 200, 0]);
  });

  it('never call anything older than it is, however long a run goes on', () => {
    const times = new AppendTimes();
    for (let second = 0; second < 10_000; second += 1) times.note(second * 10 + 10, second * SECOND);
    for (let second = 0; second < 10_000; second += 97) {
      expect(times.before(second * SECOND)).toBeLessThanOrEqual(second * 10 + 10);
      expect(times.at(second * 10)).toBeLessThanOrEqual(second * SECOND);
    }
    expect(times.before(9_999 * SECOND)).toBe(100_000);
  });
});
