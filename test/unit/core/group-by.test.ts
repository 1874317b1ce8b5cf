import { expect, it } from 'vitest';
import { groupBy } from '../../../src/core/lists.js';

it('keeps the order of items in a group, and of groups by their first item', () => {
  const groups = groupBy(['pear', 'fig', 'plum', 'apple', 'fir'], (word) => word[0]);
  expect([...groups]).toEqual([
    ['p', ['pear', 'plum']],
    ['f', ['fig', 'fir']],
    ['a', ['apple']],
  ]);
  expect(groupBy([], String).size).toBe(0);
});
