import { expect, test } from 'vitest';
import { systemMachine } from '../../../src/core/guard.js';

test("the machine's memory is a number that a machine may have", () => {
  expect(systemMachine.memoryBytes).toBeGreaterThan(100 * 2 ** 20);
  expect(systemMachine.memoryBytes).toBeLessThan(2 ** 50);
  expect(systemMachine.maxHeapBytes).toBeLessThan(2 ** 50);
  expect(systemMachine.residentBytes()).toBeLessThan(systemMachine.memoryBytes);
});

test('garbage is given back when that is asked for', () => {
  // Small objects: large ones would not wait for it.
  let garbage: object[] = Array.from({ length: 2_000_000 }, (_, index) => ({ index }));
  const before = process.memoryUsage().heapUsed;
  garbage = [];
  systemMachine.collectGarbage();
  expect(garbage).toEqual([]);
  expect(process.memoryUsage().heapUsed).toBeLessThan(before - 40 * 2 ** 20);
});
