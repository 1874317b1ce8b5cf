import { expect, it } from 'vitest';
import { askedBy, OCCASIONS, whenOf } from '../../../src/webhook/occasions.js';

const COMBINATIONS = Array.from({ length: 2 ** OCCASIONS.length }, (_, bits) =>
  OCCASIONS.filter((_one, at) => (bits >> at) % 2 === 1),
);

it.each([true, false])('shows each choice that was stored, at once: %s', (isAtOnce) => {
  for (const occasions of COMBINATIONS) {
    const asked = askedBy({ kind: 'each', occasions, isAtOnce });
    const shown = whenOf(asked);
    if (shown.kind !== 'each') throw new Error(`${occasions} became ${shown.kind}`);
    expect(askedBy(shown)).toEqual(asked);
    // What succeeds after a failure is one of those that succeed with warnings or without.
    const all = ['success', 'warned', 'failed', 'canceled'].every((one) => occasions.some((other) => other === one));
    expect(new Set(shown.occasions)).toEqual(new Set(all ? [...occasions, 'recovered'] : occasions));
  }
  expect(whenOf(askedBy({ kind: 'changes', isAtOnce }))).toEqual({ kind: 'changes', isAtOnce });
});

it.each([
  [{ verdicts: ['success'], event_types: ['job.run.errored'] }],
  [{ statuses: ['success'] }],
  [{ transitions: ['recovery'] }],
  [{ verdicts: ['failed'], transitions: ['first_failure', 'recovery'] }],
] as const)('keeps %j, which no choice makes', (part) => {
  const asked = { event_types: ['job.run.completed'], verdicts: [], statuses: [], transitions: [], ...part } as const;
  expect(whenOf(asked)).toEqual({ kind: 'kept' });
});

it('restricts nothing where all runs are wanted, or failures alone', () => {
  expect(askedBy({ kind: 'each', occasions: ['failed'], isAtOnce: true })).toMatchObject({
    ...{ event_types: ['job.run.errored'], verdicts: [] },
  });
  expect(askedBy({ kind: 'each', occasions: OCCASIONS, isAtOnce: true })).toMatchObject({
    ...{ event_types: ['job.run.started', 'job.run.errored', 'job.run.completed'], verdicts: [] },
  });
});
