import { describe, expect, it } from 'vitest';
import { historiesOf, WINDOW_MS } from '../../../src/history/node-history.js';
import type { CommandDigest } from '../../../src/run/measures/command-digest.js';
import { countVerdicts, type NodeVerdict } from '../../../src/run/verdict.js';
import type { CatalogRun } from '../../../src/storage/run-catalog.js';

const NOW_MS = 100 * 86_400_000;
const HOUR_MS = 3_600_000;
type Worked = readonly [uniqueId: string, verdict: NodeVerdict, shareMs: number, warehouseMs: number, rows?: number];

const SCOPE = { command: 'build', target: 'duck', packages: ['shop'] };
const NOTHING = { index: 1, counts: countVerdicts([]), noOpCount: 0, failed: [], good: [], cause: null, phaseMs: {} };

/** Runs, the last first: each began an hour before the one before it, or as long ago as given. */
function histories(
  runs: readonly (readonly Worked[])[],
  agoMs?: number,
  scopeOf: (index: number) => Partial<CommandDigest['scope']> = () => ({}),
  job = 'nightly',
) {
  return historiesOf(
    runs.map((nodes, index) => {
      const startedUnixMs = NOW_MS - (agoMs ?? 0) - index * HOUR_MS;
      const run = {
        id: 2_000 - index,
        startedUnixMs,
        createdUnixMs: 0,
        project: { id: 2_001 },
        job: { id: 4_001, name: job },
      };
      const work: CommandDigest['work'] = {
        uniqueIds: nodes.map(([id]) => id),
        labels: nodes.map(([id]) => id.replace('.', ' ')),
        verdicts: nodes.map(([, verdict]) => verdict),
        executed: nodes.map(([, verdict]) => verdict !== 'canceled' && scopeOf(index).command !== 'compile'),
        sharesMs: Float64Array.from(nodes, ([, , shareMs]) => shareMs),
        warehouseMs: Float64Array.from(nodes, ([, , , warehouseMs]) => warehouseMs),
        tookMs: Float64Array.from(nodes, ([, , shareMs]) => shareMs),
        rows: Float64Array.from(nodes, ([, , , , rows]) => rows ?? Number.NaN),
        otherWarehouseMs: 5,
      };
      return {
        run: run as CatalogRun,
        digests: [{ ...NOTHING, work, scope: { ...SCOPE, ...scopeOf(index) } }],
      };
    }),
    NOW_MS,
  );
}

describe('the history of a model or test', () => {
  it('has its last outcome first, its usual duration, and the rows of the last time that it went well', () => {
    const [node] = histories([
      [['model.a', 'error', 9_000, 1]],
      [['model.a', 'success', 100, 10, 7]],
      [['model.a', 'success', 300, 20, 6]],
    ]).nodes;
    expect(node).toMatchObject({ label: 'model a', isTest: false, failuresInARow: 1, failureCount: 1 });
    expect(node).toMatchObject({ usualMs: 200, rows: 7, warehouseMs: 31, grownMs: null });
    expect(node?.runs.map(({ run }) => run.id)).toEqual([2_000, 1_999, 1_998]);
  });

  it('grows by what the newer half of its runs takes longer than the older', () => {
    const of = (...lengths: readonly number[]) =>
      histories(lengths.map((ms) => [['model.a', 'success', ms, 0]])).nodes[0]?.grownMs;
    expect(of(500, 500, 500, 100, 100, 100)).toBe(400);
    expect(of(100, 100, 100, 500, 500, 500)).toBe(-400);
    expect(of(900, 100)).toBeNull();
  });

  it('is flaky where it fails and goes well in turn, and not where it broke, or was mended', () => {
    const of = (...verdicts: readonly NodeVerdict[]) =>
      histories(verdicts.map((verdict) => [['test.a', verdict, 1, 0]])).nodes[0];
    expect(of('success', 'failed', 'success')).toMatchObject({ isTest: true, isFlaky: true, failureCount: 1 });
    expect(of('failed', 'failed', 'success')).toMatchObject({ isFlaky: false, failuresInARow: 2 });
    expect(of('success', 'failed', 'failed')).toMatchObject({ isFlaky: false, failuresInARow: 0 });
    expect(of('failed', 'canceled', 'failed', 'success')).toMatchObject({ isFlaky: false, failuresInARow: 2 });
    expect(of('failed', 'failed')).toMatchObject({ isFlaky: false, failuresInARow: 2 });
  });

  it('is not made by runs that only compiled it, but for what their queries cost', () => {
    const failed: readonly Worked[] = [['test.a', 'failed', 1, 10]];
    const compiled: readonly Worked[] = [['test.a', 'success', 900, 3]];
    const [node] = histories([compiled, failed, compiled, failed], 0, (index) =>
      index % 2 === 0 ? { command: 'compile' } : {},
    ).nodes;
    expect(node).toMatchObject({ isFlaky: false, failuresInARow: 2, failureCount: 2, usualMs: null, warehouseMs: 26 });
    expect(node?.runs.map(({ run }) => run.id)).toEqual([1_999, 1_997]);
  });

  it('is one for each command and target where runs are of no job', () => {
    const failed: readonly Worked[] = [['test.a', 'failed', 1, 0]];
    const good: readonly Worked[] = [['test.a', 'success', 1, 0]];
    const scopeOf = (index: number) => ({ target: index % 2 === 0 ? 'dev' : 'prod' });
    const { nodes } = histories([failed, good, failed, good], 0, scopeOf, 'adhoc');
    expect(nodes.map(({ scope, isFlaky, failuresInARow }) => [scope, isFlaky, failuresInARow])).toEqual([
      ['build, target dev', false, 2],
      ['build, target prod', false, 0],
    ]);
    expect(nodes.every(({ isOneOfSeveral }) => isOneOfSeveral)).toBe(true);
  });

  it('costs what its queries of the last 30 days took, and a job what those of all its nodes and its own took', () => {
    const run: readonly Worked[] = [
      ['model.a', 'success', 1, 100],
      ['model.b', 'success', 1, 20],
    ];
    const { nodes, jobs } = histories([run, run]);
    expect(nodes.map(({ warehouseMs }) => warehouseMs)).toEqual([200, 40]);
    expect(jobs).toEqual([{ job: { id: 4_001, name: 'nightly' }, runCount: 2, warehouseMs: 250 }]);
    const old = histories([run], WINDOW_MS + 1);
    expect([old.nodes[0]?.warehouseMs, old.jobs]).toEqual([0, []]);
  });

  it('is nothing where no run has ended', () => {
    expect(histories([])).toEqual({ nodes: [], jobs: [], runCount: 0, sinceUnixMs: null });
  });
});
