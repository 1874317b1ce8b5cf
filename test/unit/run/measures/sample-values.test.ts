import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { Attributes, type JsonObject } from '../../../../src/record/attributes.js';
import type { CommandMeasures } from '../../../../src/run/measures/run-totals.js';
import { slowestNodes } from '../../../../src/run/measures/time-split.js';
import { SAMPLES as SAMPLE_FOLDER } from '../../../fake/sample-run.js';
import { engineSummary, measuredNodes, runResultNodes, summaryOf } from '../../../tool/engine-summary.js';
import { LARGE_SAMPLES } from '../../../tool/large-samples.js';
import { fromJsonl, fromOtlp } from '../logged-samples.js';
import { measuresOf, nodeOf, sampleMeasures } from './sample-measures.js';

const SAMPLES = [
  'build-mixed',
  'build-mixed-fusion',
  'fail-fast',
  'interrupted',
  'joined',
  'overlapping',
  'preview-120-failed',
  'stale-source',
  'test-command',
];

describe('what is measured of build-mixed-fusion', () => {
  it('of a model that failed: work, lifetime, phases and the reason', async () => {
    const broken = nodeOf(await sampleMeasures('build-mixed-fusion'), 'model.shop.broken');
    expect(broken).toMatchObject({
      nodeType: 'model',
      verdict: 'error',
      outcome: 'error',
      previousStatus: 'error',
      durationMs: 1059,
      idleTimeMs: null,
      rows: null,
      message: expect.stringContaining('Database Error in model broken'),
    });
    expect(broken.phases.map(({ phase, outcome }) => [phase, outcome])).toEqual([
      ['RENDER', 'success'],
      ['ANALYZE', 'success'],
      ['RUN', 'error'],
    ]);
  });

  it('of nodes that were skipped: the reason, the upstream and the status that they would have had', async () => {
    const measures = await sampleMeasures('build-mixed-fusion');
    expect(nodeOf(measures, 'model.shop.after_broken')).toMatchObject({
      verdict: 'skipped',
      skipReason: 'upstream',
      skipUpstream: 'model.shop.broken',
      previousStatus: 'skipped',
    });
    expect(nodeOf(measures, 'model.shop.eph_paid')).toMatchObject({
      skipReason: 'noop',
      skipUpstream: null,
      previousStatus: null,
    });
  });

  it('of tests: result and failing rows', async () => {
    const measures = await sampleMeasures('build-mixed-fusion');
    expect(nodeOf(measures, 'test.shop.status_strict.0c25ec6282')).toMatchObject({
      outcome: 'success',
      testOutcome: 'failed',
      failingRows: 1,
      previousStatus: 'fail',
    });
    expect(nodeOf(measures, 'test.shop.no_negative')).toMatchObject({ testOutcome: 'passed', previousStatus: 'pass' });
    expect(nodeOf(measures, 'test.shop.orders_customer_warn.d69b09940d')).toMatchObject({ previousStatus: 'warn' });
    expect(nodeOf(measures, 'unit_test.shop.ut_target.ut_wrong').diffTable).toContain('| order_id |');
  });

  it('in all: length, work, rows of what is no test, and the slowest nodes', async () => {
    const { totals, nodes, phases } = await sampleMeasures('build-mixed-fusion');
    expect(totals).toMatchObject({
      lengthNano: 1_753_314_563n,
      nodeCount: 21,
      nodeCounts: { success: 13, warned: 1, failed: 2, error: 1, canceled: 0, skipped: 4, unfinished: 0 },
      testCounts: { passed: 6, warned: 1, failed: 2 },
      durationMs: 2019,
      rows: 9,
    });
    expect(slowestNodes(nodes, 3).map(({ uniqueId, durationMs }) => [uniqueId, durationMs])).toEqual([
      ['model.shop.broken', 1059],
      ['model.shop.stg_orders', 94],
      ['snapshot.shop.cust_snap', 113],
    ]);
    expect(phases.map(({ phase, nodeCount }) => [phase, nodeCount])).toEqual([
      ['LOAD_PROJECT', 0],
      ['PARSE', 0],
      ['SCHEDULE', 0],
      ['TASK_GRAPH_BUILD', 0],
      ['ON_RUN_START', 0],
      ['RENDER', 21],
      ['RUN', 21],
      ['ANALYZE', 17],
      ['ON_RUN_END', 0],
    ]);
  });
});

it('a node that was interrupted has no earlier status, whatever the engine calls it', async () => {
  const measures = await sampleMeasures('interrupted');
  expect(nodeOf(measures, 'model.shop.slow_a')).toMatchObject({
    verdict: 'canceled',
    outcome: 'success',
    previousStatus: null,
    durationMs: 4,
  });
  expect(nodeOf(measures, 'model.shop.slow_a').phases.at(-1)).toMatchObject({ phase: 'RUN', endTimeUnixNano: null });
});

it('a node whose NodeProcessed never ended has what its phases tell, and no duration', async () => {
  expect(nodeOf(await sampleMeasures('fail-fast'), 'snapshot.shop.cust_snap')).toMatchObject({
    durationMs: null,
    lifetimeNano: null,
    endTimeUnixNano: null,
    previousStatus: null,
  });
});

it('an older engine gives the same measures', async () => {
  const { nodes } = await sampleMeasures('preview-120-failed');
  expect(nodes.map(({ verdict, previousStatus, durationMs }) => [verdict, previousStatus, durationMs])).toEqual([
    ['error', 'error', 366],
    ['failed', 'fail', 2962],
  ]);
});

it.each(SAMPLES)(
  'the nodes of %s are counted as its summary counts them, whichever command they are of',
  async (run) => {
    const commands = await measuresOf(fromJsonl(run));
    expect(commands).toHaveLength(run === 'overlapping' ? 2 : 1);
    for (const { totals, invocation } of commands) expect(totals.nodeCounts).toEqual(invocation.nodeCounts);
  },
);

it.each(SAMPLES)('the waits and steps of the critical path of %s add up to the command’s length', async (run) => {
  for (const { criticalPath, totals } of await measuresOf(fromJsonl(run))) {
    const { links, tailNano } = criticalPath;
    expect(links.length).toBeGreaterThan(1);
    expect(links.reduce((sum, { waitNano, timeNano }) => sum + waitNano + timeNano, tailNano)).toBe(totals.lengthNano);
    expect(links.every(({ waitNano, timeNano }) => waitNano >= 0n && timeNano >= 0n)).toBe(true);
  }
});

it.each(SAMPLES)('what %s spent its time on adds up to its length, to the nanosecond', async (run) => {
  for (const command of await measuresOf(fromJsonl(run))) expectAddsUp(command);
});

it('the critical path of build-mixed-fusion goes through the seed, the staging model and the model that failed', async () => {
  const { criticalPath } = await sampleMeasures('build-mixed-fusion');
  expect(criticalPath.links.map(({ step, basis }) => `${basis} ${step.phase} ${step.uniqueId ?? ''}`.trim())).toEqual([
    'start LOAD_PROJECT',
    'inferred PARSE',
    'inferred SCHEDULE',
    'inferred TASK_GRAPH_BUILD',
    'inferred ON_RUN_START operation.shop.shop-on-run-start-0',
    'inferred RENDER seed.shop.raw_orders',
    'sameNode RUN seed.shop.raw_orders',
    'inferred RENDER model.shop.stg_orders',
    'sameNode ANALYZE model.shop.stg_orders',
    'sameNode RUN model.shop.stg_orders',
    'inferred RENDER test.shop.unique_stg_orders_order_id.e3b841c71a',
    'sameNode ANALYZE test.shop.unique_stg_orders_order_id.e3b841c71a',
    'sameNode RUN test.shop.unique_stg_orders_order_id.e3b841c71a',
    'inferred RUN model.shop.broken',
    'reported RENDER test.shop.not_null_after_broken_nonexistent_column.2b51526aea',
    'sameNode ANALYZE test.shop.not_null_after_broken_nonexistent_column.2b51526aea',
    'sameNode RUN test.shop.not_null_after_broken_nonexistent_column.2b51526aea',
    'inferred ON_RUN_END operation.shop.shop-on-run-end-0',
  ]);
});

it('the critical path of an interrupted run ends with what was under way, for as long as it was', async () => {
  const { criticalPath } = await sampleMeasures('interrupted');
  const last = criticalPath.links.at(-1);
  expect(last).toMatchObject({
    basis: 'sameNode',
    step: { uniqueId: 'model.shop.slow_a', phase: 'RUN', hasEnd: false },
  });
  expect(Number(last?.timeNano) / 1e6).toBeCloseTo(3306.3, 0);
});

it.each(LARGE_SAMPLES)(
  'what the large run %s spent its time on adds up to its length, and no ephemeral model is among the slowest',
  async (run) => {
    const [command] = await measuresOf(fromJsonl(run));
    if (command === undefined) throw new Error('no command');
    expectAddsUp(command);
    const { totals, nodes } = command;
    expect(totals.nodeCounts).toMatchObject({ success: 1_084, failed: 10, error: 2, skipped: 68, unfinished: 0 });
    expect([totals.noOpCount, totals.nodeCount]).toEqual([45, 1_164]);
    // The engine's sums are those of all threads, which wait for a processor: a hundred times the length.
    expect(totals.durationMs).toBeGreaterThan(10 * Number(totals.lengthNano / 1_000_000n));
    expect(slowestNodes(nodes, 10).map(({ skipReason }) => skipReason)).toEqual(Array(10).fill(null));
  },
);

describe.each([
  ['JSONL', fromJsonl],
  ['OTLP', fromOtlp],
])('the counts of a command by its %s', (_name, recordsOf) => {
  it.each(['build-clean', 'build-mixed', 'build-mixed-fusion', 'joined', 'test-command'])(
    "are those of the engine's own summary: %s",
    async (run) => {
      const [command] = await measuresOf(recordsOf(run));
      const printed = engineSummary(readFileSync(join(SAMPLE_FOLDER, run, 'stdout.txt'), 'utf8'));
      expect(command && summaryOf(command)).toEqual(printed);
    },
  );

  it("are those of the engine's own summary but for what was interrupted, which it calls a success and an error", async () => {
    const [command] = await measuresOf(recordsOf('interrupted'));
    const printed = engineSummary(readFileSync(join(SAMPLE_FOLDER, 'interrupted', 'stdout.txt'), 'utf8'));
    const { success = 0, error = 0, ...same } = printed ?? {};
    expect(command?.totals.nodeCounts.canceled).toBe(2);
    expect(command && summaryOf(command)).toEqual({ ...same, success: success - 1, error: error - 1 });
  });

  it('and its nodes are those of run_results.json: none that was only rendered for a unit test', async () => {
    const [command] = await measuresOf(recordsOf('test-command'));
    const written = runResultNodes(readFileSync(join(SAMPLE_FOLDER, 'test-command', 'run_results.json'), 'utf8'));
    expect(command && measuredNodes(command)).toEqual(written);
    expect(command?.unselectedNodes.map(({ uniqueId }) => uniqueId).sort()).toEqual([
      'model.shop.revenue',
      'model.shop.ut_target',
    ]);
  });
});

/** A sample with other attributes at the end of one node. */
function withNode(run: string, uniqueId: string, changes: JsonObject): readonly LoggedRecord[] {
  return fromJsonl(run).map((logged) => {
    const { record } = logged;
    if (record.recordType !== 'SpanEnd' || record.spanName !== `Node processed (${uniqueId})`) return logged;
    const attributes = Attributes.of({ ...JSON.parse(record.attributes.json), ...changes });
    return { ...logged, record: { ...record, attributes } };
  });
}

it('a node that was not selected counts where it failed', async () => {
  const [command] = await measuresOf(
    withNode('test-command', 'model.shop.revenue', { node_outcome: 'NODE_OUTCOME_ERROR' }),
  );
  expect(command?.invocation.nodeCounts.error).toBe(1);
  expect(command && nodeOf(command, 'model.shop.revenue').verdict).toBe('error');
});

it("an outcome that this version does not know is shown and counted in the engine's own word", async () => {
  const [command] = await measuresOf(
    withNode('build-clean', 'model.shop.revenue', { node_outcome: 'NODE_OUTCOME_DEFERRED' }),
  );
  expect(command?.invocation.nodeCounts).toMatchObject({ success: 12, unfinished: 0, deferred: 1 });
  expect(command && nodeOf(command, 'model.shop.revenue')).toMatchObject({
    verdict: 'deferred',
    outcome: 'deferred',
    previousStatus: null,
  });
});

it('a stale source has its age and is no test without rows', async () => {
  const source = nodeOf(await sampleMeasures('stale-source'), 'source.shop.ext.raw_orders');
  expect(source).toMatchObject({
    verdict: 'warned',
    freshness: { outcome: 'warned', ageSeconds: 28_128_350 },
    testOutcome: null,
  });
});

function expectAddsUp({ nodes, unselectedNodes, hooks, phases, split, timeParts, totals }: CommandMeasures): void {
  const shares = [...nodes, ...unselectedNodes, ...hooks].map(({ share }) => share.queryNano + share.workNano);
  const { otherQueriesNano, waitsNano, restNano } = split;
  const all = [...shares, ...phases.map(({ shareNano }) => shareNano), otherQueriesNano, waitsNano, restNano];
  expect(all.every((nano) => nano >= 0n)).toBe(true);
  expect(all.reduce((sum, nano) => sum + nano, 0n)).toBe(totals.lengthNano);
  const { warehouseNano, ...parts } = split;
  expect(Object.values(parts).reduce((sum, nano) => sum + nano, 0n)).toBe(totals.lengthNano);
  expect(warehouseNano).toBeLessThanOrEqual(totals.lengthNano);
  expect(Object.values(timeParts).reduce((sum, nano) => sum + nano, 0n)).toBe(totals.lengthNano);
  expect(timeParts.warehouseNano).toBe(warehouseNano);
}
