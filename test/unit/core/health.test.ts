import { expect, test } from 'vitest';
import { Health } from '../../../src/core/health.js';

test('a process without checks is ready', () => {
  expect(new Health().report()).toEqual({ ready: true, checks: [] });
});

test('one part that is not ready makes the whole not ready', () => {
  const health = new Health();
  health.register('disk', () => ({ ready: true, details: { freeBytes: 5 } }));
  health.register('port', () => ({ ready: false, reason: 'not listening' }));
  expect(health.report()).toEqual({
    ready: false,
    checks: [
      { name: 'disk', state: { ready: true, details: { freeBytes: 5 } } },
      { name: 'port', state: { ready: false, reason: 'not listening' } },
    ],
  });
});

test('a check that throws counts as not ready', () => {
  const health = new Health();
  health.register('disk', () => {
    throw new Error('gone');
  });
  expect(health.report().checks[0]?.state).toEqual({ ready: false, reason: 'the check itself failed: Error: gone' });
});
