import { expect, test } from 'vitest';
import { type Component, ComponentGroup } from '../../../src/core/lifecycle.js';

const NEVER = new AbortController().signal;

/** A component that notes what happens to it. */
function component(name: string, log: string[], faults: Partial<Component> = {}): Component {
  const note = (what: string) => async () => void log.push(`${name} ${what}`);
  return { name, start: note('starts'), shutdown: note('ends'), ...faults };
}

test('components side by side start in their order and end without waiting for each other', async () => {
  const log: string[] = [];
  let letGo = () => {};
  const waiting = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const both = new ComponentGroup('both', [component('a', log, { shutdown: () => waiting }), component('b', log)]);
  await both.start();
  const down = both.shutdown(NEVER);
  await Promise.resolve();
  expect(log).toEqual(['a starts', 'b starts', 'b ends']);
  letGo();
  await down;
});

test('where one cannot start, the others end again', async () => {
  const log: string[] = [];
  const start = () => Promise.reject(new Error('no port'));
  const both = new ComponentGroup('both', [component('a', log), component('b', log, { start })]);
  await expect(both.start()).rejects.toThrow('no port');
  expect(log).toEqual(['a starts', 'a ends', 'b ends']);
});

test('one that does not end well is reported, after the others have ended', async () => {
  const log: string[] = [];
  const shutdown = () => Promise.reject(new Error('stuck'));
  const both = new ComponentGroup('both', [component('a', log, { shutdown }), component('b', log)]);
  await expect(both.shutdown(NEVER)).rejects.toThrow(/stuck/);
  expect(log).toEqual(['b ends']);
});
