import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HeldSpans, LineBlock } from '../../../../src/export/lines/line-reader.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';

const block = new LineBlock(64);

it('spans come out as they went in, however many wait at a time', () => {
  const steps = fc.array(fc.integer({ min: -80, max: 100 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(steps, (counts) => {
      const held = new HeldSpans();
      const expected: number[] = [];
      let next = 0;
      for (const count of counts) {
        for (let index = 0; index < count; index++, next++) {
          held.add(next, UNKNOWN_RESOURCE, next, 0, block, next);
          expected.push(next);
        }
        for (let index = 0; index > count && expected.length > 0; index--) {
          const oldest = expected.shift() ?? 0;
          expect([held.isOldestBefore(oldest, 0), held.isOldestBefore(oldest, 1)]).toEqual([false, true]);
          const taken = held.takeOldest();
          expect(taken?.anchorOffset).toBe(oldest);
          expect([taken?.block, taken?.index]).toEqual([block, oldest]);
        }
        expect(held.count).toBe(expected.length);
      }
    }),
    { numRuns: 50 },
  );
});

it('nothing is older than any time where nothing is held', () => {
  const held = new HeldSpans();
  expect(held.isOldestBefore(2 ** 31, 0)).toBe(false);
  expect(held.takeOldest()).toBeUndefined();
});
