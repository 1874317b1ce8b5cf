import { expect, it } from 'vitest';
import { MissingParents, SpanTree } from '../../../../src/export/mapping/span-tree.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';

const MAX_COUNT = 3;

function missingParents(): MissingParents {
  return new MissingParents(MAX_COUNT, new SpanTree(MAX_COUNT));
}

function seeChildOf(missing: MissingParents, parentLow: number, startSeconds = 0, endSeconds = startSeconds): void {
  const ids = { spanHigh: 1, spanLow: parentLow, parentHigh: 0, parentLow };
  const times = { startSeconds, startNanos: 0, endSeconds, endNanos: 0 };
  const child = { ...ids, ...times, eventType: '', uniqueId: undefined, text: () => undefined };
  missing.seeChild(child, UNKNOWN_RESOURCE);
}

const idsOf = (missing: MissingParents) => missing.list().map(({ spanLow }) => spanLow);

it('parents are missed in the order in which they were named, until they arrive, and of too many the oldest are not', () => {
  const missing = missingParents();
  for (const id of [1, 2, 3, 4]) seeChildOf(missing, id);
  expect(idsOf(missing)).toEqual([2, 3, 4]);
  missing.arrived(0, 3);
  missing.arrived(0, 9);
  expect(idsOf(missing)).toEqual([2, 4]);
  for (const id of [5, 6]) seeChildOf(missing, id);
  expect(idsOf(missing)).toEqual([4, 5, 6]);
  for (const id of [4, 5, 6]) missing.arrived(0, id);
  expect(idsOf(missing)).toEqual([]);
});

it('a parent lasts as long as its children, whatever stood in its place before', () => {
  const missing = missingParents();
  seeChildOf(missing, 1, 1, 9);
  missing.arrived(0, 1);
  seeChildOf(missing, 2, 5, 6);
  seeChildOf(missing, 2, 4, 5);
  seeChildOf(missing, 2, 6, 7);
  expect(missing.list()).toMatchObject([{ spanLow: 2, startSeconds: 4, endSeconds: 7 }]);
});

it('takes no more rows than were missed at a time', () => {
  const missing = missingParents();
  const seen = new Set<unknown>();
  for (let id = 1; id < 1000; id++) {
    seeChildOf(missing, id);
    for (const one of missing.list()) seen.add(one);
    missing.arrived(0, id - 1);
  }
  expect(seen.size).toBe(2);
});
