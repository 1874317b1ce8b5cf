import { expect, it } from 'vitest';
import { limitedLanes, timelineOf } from '../../../../src/run/measures/timeline.js';
import { sampleMeasures } from './sample-measures.js';

const slice = (start: number, end: number) => ({ start: BigInt(start), end: BigInt(end) });

it('puts slices into as few lanes as they need', () => {
  const { lanes, crowds } = limitedLanes([slice(5, 9), slice(0, 5), slice(2, 4), slice(4, 6)], 2);
  expect(lanes).toEqual([
    [slice(0, 5), slice(5, 9)],
    [slice(2, 4), slice(4, 6)],
  ]);
  expect(crowds).toEqual([]);
});

it('puts what finds none of the lanes into crowds that follow one another', () => {
  const [a, b, c, d] = [slice(1, 4), slice(2, 8), slice(7, 9), slice(9, 10)];
  const { lanes, crowds } = limitedLanes([slice(0, 10), d, c, b, a], 1);
  expect(lanes).toEqual([[slice(0, 10)]]);
  expect(crowds).toEqual([
    { ...slice(1, 9), slices: [a, b, c] },
    { ...slice(9, 10), slices: [d] },
  ]);
});

it('draws a node where it was worked on, in a group of what nodes have in common', async () => {
  const command = await sampleMeasures('build-mixed');
  const threads = timelineOf(command, 1_000);
  const pieces = (threads?.groups ?? []).flatMap(({ lanes }) => lanes.flat());
  expect(new Set(pieces.map(({ node }) => node))).toEqual(new Set(threads?.nodes));
  const types = timelineOf(command, 1_000, 'type')?.groups ?? [];
  for (const { name, lanes } of types) {
    for (const { node } of lanes.flat()) expect(node.nodeType?.replaceAll('_', ' ')).toBe(name);
  }
  expect(types.flatMap(({ lanes }) => lanes.flat())).toHaveLength(pieces.length);
});

it('draws failures before what took longest, and counts the rest', async () => {
  const command = await sampleMeasures('build-mixed');
  const bad = command.nodes.filter(({ verdict }) => verdict === 'error' || verdict === 'failed');
  const drawn = timelineOf(command, bad.length);
  expect(new Set(drawn?.nodes)).toEqual(new Set(bad));
  expect(drawn?.omittedCount).toBe(command.nodes.length - bad.length);
});
