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
    const { longerMs, changed, slower, faster, added, gone } = compareCommands(command, command);
    expect(longerMs).toBe(0);
    expect([changed, slower, faster, added, gone]).toEqual([[], [], [], [], []]);
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

  test('ranks by what of the time fell to nodes, leaves out small changes and waiting', async () => {
    const before = await sampleMeasures('build-clean');
    const [a, b, c, d, e] = ids(before.nodes);
    const share = (ms: number) => ({ share: { queryNano: BigInt(ms) * 500_000n, workNano: BigInt(ms) * 500_000n } });
    const from = altered(before, {
      ...{ [`${a}`]: share(10), [`${b}`]: share(20_000), [`${c}`]: share(500) },
      ...{ [`${d}`]: share(400), [`${e}`]: { durationMs: 10 } },
    });
    const to = altered(before, {
      ...{ [`${a}`]: share(1_010), [`${b}`]: share(25_000), [`${c}`]: share(599) },
      ...{ [`${d}`]: share(300), [`${e}`]: { durationMs: 9_000 } },
    });
    const { slower, faster } = compareCommands(from, to);
    expect(slower.map(({ after, longerMs }) => [after.uniqueId, longerMs])).toEqual([
      [b, 5_000],
      [a, 1_000],
    ]);
    expect(faster.map(({ after, longerMs }) => [after.uniqueId, longerMs])).toEqual([[d, -100]]);
  });

  test('of a large run that waited longer for processors lists no node, and says how many were worked on at a time', async () => {
    const before = await sampleMeasures('big-build');
    const busy = {
      ...before,
      totals: { ...before.totals, durationMs: before.totals.durationMs * 3 },
      nodes: before.nodes.map((node) => ({ ...node, durationMs: (node.durationMs ?? 0) * 3 })),
    };
    const { slower, faster, contention } = compareCommands(before, busy);
    expect([slower, faster]).toEqual([[], []]);
    expect((contention.after ?? 0) / (contention.before ?? 0)).toBeCloseTo(3);
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
