import { expect, it } from 'vitest';
import { criticalPath } from '../../../../src/run/measures/critical-path.js';
import type { PathStep } from '../../../../src/run/measures/time-split.js';

const MS = 1_000_000n;

function node(
  name: string,
  phase: string,
  startMs: number,
  endMs: number,
  skipUpstream: string | null = null,
): PathStep {
  const times = { startTimeUnixNano: BigInt(startMs) * MS, endTimeUnixNano: BigInt(endMs) * MS };
  return { kind: 'node', uniqueId: name, phase, ...times, hasEnd: true, skipUpstream, waits: [] };
}

function pathOf(steps: readonly PathStep[], endMs: number, upstream: Record<string, readonly string[]> | null = null) {
  const command = { startTimeUnixNano: 0n, endTimeUnixNano: BigInt(endMs) * MS };
  const { links, tailNano } = criticalPath(steps, command, upstream && new Map(Object.entries(upstream)));
  return {
    links: links.map(({ step, basis, waitNano }) => `${step.uniqueId} ${step.phase} after ${waitNano / MS} (${basis})`),
    tailMs: Number(tailNano / MS),
  };
}

it('a command without a step is all tail', () => {
  expect(pathOf([], 7)).toEqual({ links: [], tailMs: 7 });
});

it('a node’s first phase waited for the node that was done last, not for one that was done with a phase', () => {
  const steps = [
    node('a', 'RENDER', 1, 2),
    node('a', 'RUN', 2, 10),
    node('b', 'RENDER', 1, 11),
    node('c', 'RENDER', 12, 13),
    node('c', 'RUN', 13, 30),
    node('b', 'RUN', 20, 25),
  ];
  expect(pathOf(steps, 30).links).toEqual([
    'a RENDER after 1 (start)',
    'a RUN after 0 (sameNode)',
    'c RENDER after 2 (inferred)',
    'c RUN after 0 (sameNode)',
  ]);
});

it('a node that had to wait between its phases waited for the last in the phase', () => {
  const steps = [
    node('a', 'RENDER', 0, 1),
    node('b', 'RENDER', 0, 2),
    node('a', 'RUN', 1, 10),
    node('b', 'RUN', 11, 20),
  ];
  expect(pathOf(steps, 21)).toEqual({
    links: ['a RENDER after 0 (start)', 'a RUN after 0 (sameNode)', 'b RUN after 1 (inferred)'],
    tailMs: 1,
  });
});

it('a node that waited between its phases while no other ended there waited for nothing that is known', () => {
  const steps = [node('a', 'RENDER', 0, 1), node('a', 'RUN', 5, 10)];
  expect(pathOf(steps, 10).links).toEqual(['a RENDER after 0 (start)', 'a RUN after 4 (sameNode)']);
});

it('what the engine tells goes before what ended last', () => {
  const steps = [node('bad', 'RUN', 0, 5), node('other', 'RUN', 1, 6), node('skipped', 'RUN', 8, 8, 'bad')];
  expect(pathOf(steps, 8).links).toEqual(['bad RUN after 0 (start)', 'skipped RUN after 3 (reported)']);
});

it('steps without a length at one moment make no circle', () => {
  const steps = [node('a', 'RUN', 5, 5, 'b'), node('b', 'RUN', 5, 5, 'a'), node('c', 'RUN', 1, 5)];
  expect(pathOf(steps, 5).links).toEqual(['c RUN after 1 (start)']);
});

it('where it is known what nodes depend on, a node waited for that, and then for a thread', () => {
  const steps = [
    node('a', 'RENDER', 1, 2),
    node('a', 'RUN', 2, 10),
    node('other', 'RENDER', 1, 2),
    node('other', 'RUN', 2, 19),
    node('b', 'RENDER', 12, 13),
    node('b', 'RUN', 20, 30),
  ];
  expect(pathOf(steps, 30, { b: ['a'] }).links).toEqual([
    'a RENDER after 1 (start)',
    'a RUN after 0 (sameNode)',
    'b RENDER after 2 (dependsOn)',
    'b RUN after 7 (sameNode)',
  ]);
  expect(pathOf(steps, 30).links).toEqual([
    'other RENDER after 1 (start)',
    'other RUN after 0 (sameNode)',
    'b RUN after 1 (inferred)',
  ]);
});

it('a later phase waited for what the node depends on, where that was done after its earlier phase', () => {
  const steps = [node('a', 'RUN', 0, 10), node('b', 'RENDER', 0, 1), node('b', 'RUN', 11, 20)];
  expect(pathOf(steps, 20, { b: ['a'] }).links).toEqual(['a RUN after 0 (start)', 'b RUN after 1 (dependsOn)']);
});

it('a node that depends on nothing waited for the hook or phase before it, not for other nodes', () => {
  const parse = { ...node('', 'PARSE', 0, 3), kind: 'phase' as const, uniqueId: null };
  const steps = [parse, node('other', 'RUN', 4, 9), node('b', 'RUN', 10, 20)];
  expect(pathOf(steps, 20, {}).links).toEqual(['null PARSE after 0 (start)', 'b RUN after 7 (inferred)']);
});
