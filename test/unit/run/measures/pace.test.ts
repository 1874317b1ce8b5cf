import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { concurrencyOf, paceOf, sumOfParts, timeSentence } from '../../../../src/run/measures/pace.js';
import { withDependencies } from '../../../../src/run/measures/upstream.js';
import { readManifest } from '../../../../src/storage/manifest.js';
import { sampleMeasures } from './sample-measures.js';

const NONE = { parseNano: 0n, compileNano: 0n, runNano: 0n, warehouseNano: 0n, threadsNano: 0n, restNano: 0n };

it('a sentence names the parts of the time, the longest first, and leaves out what took less than a thousandth', () => {
  const parts = { ...NONE, parseNano: 510n, warehouseNano: 2_000n, restNano: 1n, threadsNano: 25n };
  expect(timeSentence(parts)).toBe('79 % waiting for the warehouse, 20 % parsing, 1.0 % waiting for threads');
  expect(timeSentence(sumOfParts([parts, { ...NONE, parseNano: 2_000n }]))).toMatch(/^55 % parsing, 44 % waiting/);
  expect(timeSentence(NONE)).toBe('');
});

it('of a large run it says how many nodes were worked on at a time, and how many waited', async () => {
  const concurrency = concurrencyOf(await sampleMeasures('big-build'));
  // As added up by hand from the spans of nodes without the waits in them.
  expect(concurrency?.peak).toBe(218);
  expect(concurrency?.average).toBeCloseTo(86.3, 1);
  const { running = [], queued = [] } = concurrency ?? {};
  expect(running).toHaveLength(queued.length);
  expect(Math.max(...running)).toBeLessThanOrEqual(218);
  expect(Math.max(...queued)).toBeGreaterThan(200);
  // While the engine parses nothing is worked on.
  expect(running[0]).toBe(0);
});

it('without a node nothing was worked on', async () => {
  const command = await sampleMeasures('parse');
  expect(concurrencyOf(command)).toBeNull();
  expect(paceOf(command)).toMatchObject({ concurrency: null, longest: null, latest: null });
});

it('runs are compared by the length, the work on the critical path, the longest node and the one begun last', async () => {
  const command = await sampleMeasures('build-mixed');
  const { lengthNano, criticalNano, longest, latest } = paceOf(command);
  expect(lengthNano).toBe(command.totals.lengthNano);
  expect(criticalNano).toBeLessThan(lengthNano);
  expect(longest?.node.uniqueId).toBe('model.shop.broken');
  expect(latest?.afterNano).toBeGreaterThan(longest?.workNano ?? lengthNano);
});

it('with a manifest the critical path goes from node to node by what they depend on, and adds up all the same', async () => {
  const manifest = await readManifest(chunks('test/fixture/manifest.json'));
  const command = await sampleMeasures('build-mixed');
  expect(command.criticalPath.follows).toBe('times');
  const { criticalPath, totals } = withDependencies(command, manifest);
  expect(criticalPath.follows).toBe('dependencies');
  const sum = criticalPath.links.reduce(
    (so, { waitNano, timeNano }) => so + waitNano + timeNano,
    criticalPath.tailNano,
  );
  expect(sum).toBe(totals.lengthNano);
  const nodes = criticalPath.links.flatMap(({ step }) => step.uniqueId ?? []);
  expect([...new Set(nodes)].slice(0, 4)).toEqual([
    'operation.shop.shop-on-run-start-0',
    'seed.shop.raw_orders',
    'model.shop.stg_orders',
    'test.shop.unique_stg_orders_order_id.e3b841c71a',
  ]);
  // Of nodes only what depends on nothing waited for a hook or a phase, and nothing for what merely ended before.
  const guessed = criticalPath.links.filter(({ step, basis }) => basis === 'inferred' && step.kind === 'node');
  expect(guessed.map(({ step }) => step.uniqueId)).toEqual(['seed.shop.raw_orders']);
});

async function* chunks(path: string) {
  yield readFileSync(path);
}
