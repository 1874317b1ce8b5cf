import { expect, test } from 'vitest';
import { inFlightLimit } from '../../../src/receiver/export-intake.js';

const MIB = 2 ** 20;

test('bodies in flight get 256 MiB where memory is plenty', () => {
  expect(inFlightLimit(8_192 * MIB)).toBe(256 * MIB);
});

test('decoded, all bodies in flight find room in the memory that there is', () => {
  const limit = inFlightLimit(512 * MIB);
  expect(96 * MIB + 12 * limit).toBeLessThan(0.9 * 512 * MIB);
  expect(limit).toBeGreaterThan(25 * MIB);
});

test('a body of 4 MiB is taken with the least of memory', () => {
  expect(inFlightLimit(128 * MIB)).toBeGreaterThanOrEqual(4 * MIB);
});
