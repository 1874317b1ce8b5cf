import { expect, it } from 'vitest';
import { compareWithEarlier } from '../../../../src/run/measures/run-totals.js';

it('there is nothing to say without earlier runs', () => {
  expect(compareWithEarlier(5, [])).toBeNull();
});

it('one earlier run is its own median and percentile', () => {
  expect(compareWithEarlier(150, [100])).toEqual({
    totalMs: 150,
    count: 1,
    medianMs: 100,
    p95Ms: 100,
    ratio: 1.5,
    isSlow: true,
  });
});

it('percentiles lie between the lengths, in whatever order these are given', () => {
  expect(compareWithEarlier(30, [40, 10, 30, 20, 50])).toMatchObject({
    medianMs: 30,
    p95Ms: 48,
    ratio: 1,
    isSlow: false,
  });
  expect(compareWithEarlier(1, [0, 0])).toMatchObject({ ratio: null });
});
