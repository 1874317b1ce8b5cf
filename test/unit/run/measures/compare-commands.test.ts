import { describe, expect, test } from 'vitest';
import { compareCommands, compareRuns } from '../../../../src/run/measures/compare-commands.js';
import type { NodeMeasure } from '../../../../src/run/measures/node-measure.js';
import type { CommandMeasures } from '../../../../src/run/measures/run-totals.js';
import { sampleMeasures } from './sample-measures.js';

/** The same command with some of its nodes otherwise; those that are given `null` are left out. */
function altered(
  command: CommandMeasures,
  changes: Readonly<Record<string, Partial<NodeMeasure> | null>>,
): CommandMeasures {
  const nodes = command.nodes.flatMap((node) => {
    const change = changes[node.uniqueId];
    return change === null ? [] : [{ ...node, ...change }];
  });
  return { ...command, nodes };
}

const ids = (nodes: readonly NodeMeasure[]) => nodes.map(({ uniqueId }) => uniqueId);

describe('a comparison of two commands', () => {
  test('of one with itself finds nothing', async () => {
    const command = await sampleMeasures('build-mixed');
    const { longerMs, before, after, ...lists } = compareCommands(command, command);
    expect(longerMs).toBe(0);
    expect(Object.values(lists)).toEqual([[], [], [], [], []]);
  });

  test('names what ended otherwise, the worst change first, and better ones last', async () => {
    const before = await sampleMeasures('build-clean');
    const [a, b, c] = ids(before.nodes);
    const worse = altered(before, {
      [`${a}`]: { verdict: 'skipped' },
      [`${b}`]: { verdict: 'error' },
      [`${c}`]: { verdict: 'warned' },
    });
    expect(compareCommands(before, worse).changed.map(({ after }) => [after.uniqueId, after.verdict])).toEqual([
      [b, 'error'],
      [a, 'skipped'],
      [c, 'warned'],
    ]);
    expect(compareCommands(worse, before).changed.map(({ before: one }) => one.verdict)).toEqual([
      'warned',
      'skipped',
      'error',
    ]);
  });

  test('ranks by seconds and not by shares, leaves out small changes and nodes without a time', async () => {
    const before = await sampleMeasures('build-clean');
    const [a, b, c, d, e] = ids(before.nodes);
    const from = altered(before, {
      ...{ [`${a}`]: { durationMs: 10 }, [`${b}`]: { durationMs: 60_000 }, [`${c}`]: { durationMs: 500 } },
      ...{ [`${d}`]: { durationMs: 400 }, [`${e}`]: { durationMs: null } },
    });
    const to = altered(before, {
      ...{ [`${a}`]: { durationMs: 1_010 }, [`${b}`]: { durationMs: 65_000 }, [`${c}`]: { durationMs: 599 } },
      ...{ [`${d}`]: { durationMs: 300 }, [`${e}`]: { durationMs: 9_000 } },
    });
    const { slower, faster } = compareCommands(from, to);
    expect(slower.map(({ after, longerMs }) => [after.uniqueId, longerMs])).toEqual([
      [b, 5_000],
      [a, 1_000],
    ]);
    expect(faster.map(({ after, longerMs }) => [after.uniqueId, longerMs])).toEqual([[d, -100]]);
  });

  test('names new nodes and those that are gone', async () => {
    const before = await sampleMeasures('build-clean');
    const [a = '', b = ''] = ids(before.nodes);
    const { added, gone } = compareCommands(altered(before, { [a]: null }), altered(before, { [b]: null }));
    expect([ids(added), ids(gone)]).toEqual([[a], [b]]);
  });
});

test('two runs are compared command by command, each kind in its order, and what one of them has alone is listed', async () => {
  const [build, parse] = await Promise.all([sampleMeasures('build-clean'), sampleMeasures('parse')]);
  const other = altered(build, {});
  const { pairs, added, gone } = compareRuns([build, parse], [other, build]);
  expect(pairs.map(({ before, after }) => [before === build, after === other])).toEqual([[true, true]]);
  expect([added, gone]).toEqual([[build], [parse]]);
});
