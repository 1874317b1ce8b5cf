import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BufferedSpans } from '../../../../src/export/mapping/buffered-spans.js';
import { buffer } from '../../../../src/record/arena.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';
import { itemRing } from '../../../../src/record/item-ring.js';

it('spans come out as they went in, however many wait at a time', () => {
  const steps = fc.array(fc.integer({ min: -80, max: 100 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(steps, (counts) => {
      const held = new BufferedSpans();
      const expected: number[] = [];
      let next = 0;
      for (const count of counts) {
        for (let index = 0; index < count; index++, next++) {
          held.addLine(next, UNKNOWN_RESOURCE, next, 0, Buffer.from(`line ${next}`));
          expected.push(next);
        }
        for (let index = 0; index > count && expected.length > 0; index--) {
          const oldest = expected.shift() ?? 0;
          expect([held.isOldestBefore(oldest, 0), held.isOldestBefore(oldest, 1)]).toEqual([false, true]);
          const taken = held.takeOldest();
          expect(taken?.anchorOffset).toBe(oldest);
          expect(taken?.line?.toString()).toBe(`line ${oldest}`);
        }
        expect(held.count).toBe(expected.length);
      }
    }),
    { numRuns: 50 },
  );
});

it('nothing is older than any time where nothing is held', () => {
  const held = new BufferedSpans();
  expect(held.isOldestBefore(2 ** 31, 0)).toBe(false);
  expect(held.takeOldest()).toBeUndefined();
});

it('items of several runs are what they were, however often others need the room that they stand in', () => {
  const itemBytes = 300 * 1024;
  const runs = Array.from({ length: 3 }, () => new BufferedSpans());
  const contentOf = (number: number) => `item ${number} `.repeat(2_000);
  let taken = 0;
  for (let number = 0; number < 400; number++) {
    const held = runs[number % runs.length];
    if (held === undefined) throw new Error('no such run');
    const batch = itemRing.take(itemBytes);
    if (batch === undefined) throw new Error('the room is too small for one item');
    const end = batch.start + buffer.write(contentOf(number), batch.start);
    itemRing.shorten(batch, end);
    held.addItem(number, UNKNOWN_RESOURCE, number, 0, { batch, start: batch.start, end, cells: 0, layouts: 0 });
    // The first run never lets go, the others do after a while.
    if (held === runs[0] || held.count < 50) continue;
    const oldest = held.takeOldest();
    if (oldest === undefined) throw new Error('nothing is held');
    const { item = buffer.subarray(oldest.start, oldest.end), anchorOffset } = oldest;
    expect(item.toString()).toBe(contentOf(anchorOffset));
    taken += 1;
  }
  expect(taken).toBeGreaterThan(100);
  for (let number = 0; ; number += 3) {
    const oldest = runs[0]?.takeOldest();
    if (oldest === undefined) break;
    const { item = buffer.subarray(oldest.start, oldest.end) } = oldest;
    expect(item.toString()).toBe(contentOf(number));
  }
});

it('what never has room is said so', () => {
  expect(itemRing.take(2 ** 30)).toBeUndefined();
});
