import { expect, test } from 'vitest';
import { defaultMaxMemoryBytes } from '../../../src/config/default-max-memory.js';
import { systemMachine } from '../../../src/core/guard.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const limitOf = (memoryBytes: number, maxHeapBytes = 4 * GIB) =>
  defaultMaxMemoryBytes({ ...systemMachine, memoryBytes, maxHeapBytes });

test("it is a quarter of the machine's memory", () => {
  expect(limitOf(8 * GIB)).toBe(2 * GIB);
});

test("it is no more than Node's heap may take, beyond which the process ends", () => {
  expect(limitOf(64 * GIB)).toBe(4 * GIB);
});

test('a small machine gives 384 MiB, or three quarters of what it has', () => {
  expect(limitOf(600 * MIB)).toBe(384 * MIB);
  expect(limitOf(300 * MIB)).toBe(225 * MIB);
});
