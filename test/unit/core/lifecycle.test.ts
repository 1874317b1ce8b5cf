import { describe, expect, test } from 'vitest';
import { type Component, Lifecycle } from '../../../src/core/lifecycle.js';

function components(failing: { start?: string; shutdown?: string } = {}) {
  const events: string[] = [];
  const make = (name: string): Component => ({
    name,
    async start() {
      if (failing.start === name) throw new Error(`${name} does not start`);
      events.push(`start ${name}`);
    },
    async shutdown() {
      events.push(`shutdown ${name}`);
      if (failing.shutdown === name) throw new Error('stuck');
    },
  });
  return { events, lifecycle: new Lifecycle(['export', 'log', 'receiver'].map(make)) };
}
const deadline = AbortSignal.timeout(1_000);

describe('a lifecycle', () => {
  test('starts in order and shuts down in the opposite one', async () => {
    const { events, lifecycle } = components();
    await lifecycle.start();
    await lifecycle.shutdown(deadline);
    expect(events).toEqual([
      'start export',
      'start log',
      'start receiver',
      'shutdown receiver',
      'shutdown log',
      'shutdown export',
    ]);
  });

  test('shuts down what has started when a component cannot start', async () => {
    const { events, lifecycle } = components({ start: 'receiver' });
    await expect(lifecycle.start()).rejects.toThrow('receiver does not start');
    expect(events).toEqual(['start export', 'start log', 'shutdown log', 'shutdown export']);
  });

  test('shuts all down when one fails to, and then says which', async () => {
    const { events, lifecycle } = components({ shutdown: 'log' });
    await lifecycle.start();
    await expect(lifecycle.shutdown(deadline)).rejects.toThrow('log did not end cleanly: Error: stuck');
    expect(events.at(-1)).toBe('shutdown export');
  });

  test('is shut down once', async () => {
    const { events, lifecycle } = components();
    await lifecycle.start();
    await Promise.all([lifecycle.shutdown(deadline), lifecycle.shutdown(deadline)]);
    expect(events.filter((event) => event.startsWith('shutdown'))).toHaveLength(3);
  });
});
