import fc from 'fast-check';
import { expect, it } from 'vitest';
import { divideTime, type Interval } from '../../../../src/run/measures/time-split.js';

const at = (start: number, end: number): Interval => ({
  startTimeUnixNano: BigInt(start),
  endTimeUnixNano: BigInt(end),
});
const WHOLE = at(1_000, 1_100);

it('a moment is shared by all that was under way, on the first level of which something was', () => {
  const queries = [at(1_010, 1_030), at(1_020, 1_040)];
  const nodes = [at(1_000, 1_050), at(1_060, 1_070)];
  expect(divideTime(WHOLE, [queries, nodes])).toEqual({
    shares: [
      [15n, 15n],
      [20n, 10n],
    ],
    restNano: 40n,
  });
});

it('what is outside the whole is left out, and what ends before it began took no time', () => {
  expect(divideTime(WHOLE, [[at(900, 1_010), at(1_095, 2_000), at(1_050, 1_020)]])).toEqual({
    shares: [[10n, 5n, 0n]],
    restNano: 85n,
  });
  expect(divideTime(WHOLE, [[], []])).toEqual({ shares: [[], []], restNano: 100n });
});

const interval = fc
  .tuple(fc.integer({ min: 980, max: 1_120 }), fc.integer({ min: 0, max: 60 }))
  .map(([start, length]) => at(start, start + length));

it('shares and rest add up to the whole to the nanosecond, each at most one off what a count of moments gives', () => {
  fc.assert(
    fc.property(fc.array(fc.array(interval, { maxLength: 12 }), { minLength: 1, maxLength: 3 }), (levels) => {
      const { shares, restNano } = divideTime(WHOLE, levels);
      expect(shares.flat().reduce((sum, share) => sum + share, restNano)).toBe(100n);
      const counted = levels.map((level) => level.map(() => 0));
      for (let moment = 1_000n; moment < 1_100n; moment++) {
        const active = levels.map((level) =>
          level.flatMap((one, index) =>
            one.startTimeUnixNano <= moment && moment < one.endTimeUnixNano ? [index] : [],
          ),
        );
        const first = active.findIndex((some) => some.length > 0);
        for (const index of active[first] ?? []) {
          const row = counted[first] ?? [];
          row[index] = (row[index] ?? 0) + 1 / (active[first]?.length ?? 1);
        }
      }
      for (const [level, row] of counted.entries()) {
        for (const [index, expected] of row.entries()) {
          // The count is a sum of fractions, so it is off by what `number` rounds.
          expect(Math.abs(Number(shares[level]?.[index]) - expected)).toBeLessThan(1 + 1e-9);
        }
      }
    }),
  );
});
