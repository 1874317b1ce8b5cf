import { expect, test } from 'vitest';
import { SizeEstimate } from '../../../src/core/guard.js';
import { FakeClock } from '../../fake/fake-clock.js';

const clock = new FakeClock();

/** A folder whose counts end when the test says so. */
function countedFolder() {
  const counts: ((bytes: number) => void)[] = [];
  const readSize = () => new Promise<number>((resolve) => counts.push(resolve));
  const readSpace = async () => ({ totalBytes: 0, freeBytes: 0 });
  return { counts, estimate: new SizeEstimate({ readSize, readSpace }, clock) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the size is unknown until the folder was counted, and nobody waits for it', async () => {
  const { counts, estimate } = countedFolder();
  estimate.refresh(false);
  estimate.refresh(false);
  expect(estimate.bytes).toBeUndefined();
  counts[0]?.(100);
  await settled();
  expect(estimate.bytes).toBe(100);
  expect(counts).toHaveLength(1);
});

test('what is written during a count is added to it, what was written before is not', async () => {
  const { counts, estimate } = countedFolder();
  estimate.add(10);
  estimate.refresh(false);
  estimate.add(5);
  counts[0]?.(100);
  await settled();
  expect(estimate.bytes).toBe(105);
});

test('the folder is counted again after a minute in which something was written, not while nothing is', async () => {
  const { counts, estimate } = countedFolder();
  estimate.refresh(false);
  counts[0]?.(100);
  await settled();
  clock.advance(600_000);
  estimate.refresh(false);
  expect(counts).toHaveLength(1);
  estimate.add(1);
  estimate.refresh(false);
  expect(counts).toHaveLength(2);
});

test('a folder that takes long is counted less often, also when it is urgent', async () => {
  const { counts, estimate } = countedFolder();
  estimate.refresh(true);
  clock.advance(4_000);
  counts[0]?.(100);
  await settled();
  clock.advance(39_999);
  estimate.refresh(true);
  expect(counts).toHaveLength(1);
  clock.advance(1);
  estimate.refresh(true);
  expect(counts).toHaveLength(2);
});
