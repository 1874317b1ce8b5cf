import { expect, it } from 'vitest';
import { lazy } from '../../../src/core/lazy.js';

it('makes a lazy value when it is first needed, once for all who ask', async () => {
  let count = 0;
  const value = lazy(async () => `made ${++count}`);
  expect([value.isNeeded, value.value, await value.ifNeeded()]).toEqual([false, undefined, undefined]);
  expect(await Promise.all([value.get(), value.get(), value.ifNeeded()])).toEqual(['made 1', 'made 1', 'made 1']);
  expect([value.isNeeded, value.value, await value.get()]).toEqual([true, 'made 1', 'made 1']);
});

it('tries again after a failure, which everybody hears of who asked for the value', async () => {
  const outcomes = [() => Promise.reject(new Error('no luck')), () => Promise.resolve('made')];
  const value = lazy(() => (outcomes.shift() ?? expect.fail)());
  const [first, second, other] = await Promise.allSettled([value.get(), value.get(), value.ifNeeded()]);
  expect([first.status, second.status]).toEqual(['rejected', 'rejected']);
  expect(other).toEqual({ status: 'fulfilled', value: undefined });
  expect(value.isNeeded).toBe(false);
  expect(await value.get()).toBe('made');
});
