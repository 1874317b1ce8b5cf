import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine } from '../tool/engine.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const RUNS = '/api/v2/accounts/10001/runs/?order_by=id&include_related=run_steps,job';

let engine: Engine;
let folder: string;
let data: string;
let bridge: BridgeProcess;
beforeAll(async () => {
  engine = Engine.up('core');
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-rebuild-'));
  data = join(folder, 'data');
  bridge = await BridgeProcess.start({ dataFolder: data });
  const exec = (...args: readonly string[]) =>
    engine.runCommand([process.execPath, main, 'exec', '--to', bridge.otlpUrl, ...args], {
      RUN_BRIDGE_DATA_DIR: join(folder, 'own'),
    });
  await exec('--', 'true');
  await exec('--run-id', 'night', '--job', 'nightly', '--', 'dbt', 'seed');
  await exec('--run-id', 'night', '--last', '--', 'dbt', 'build', '--exclude', 'tag:slow');
  await exec('--job', 'other', '--', 'dbt', 'parse');
});
afterAll(async () => {
  await bridge?.remove();
  engine?.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly id: number;
  readonly status: number;
  readonly is_complete: boolean;
  readonly status_message: string | null;
  readonly job: { readonly name: string };
  readonly run_steps: readonly { readonly index: number; readonly name: string; readonly status: number }[];
}

async function complete(count: number): Promise<readonly Run[]> {
  const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
  return await until('all runs', async () => {
    const answer = await fetch(bridge.webUrl + RUNS, { headers: { authorization } });
    const { data: runs } = (await answer.json()) as { data: readonly Run[] };
    return runs.length === count && runs.every(({ is_complete }) => is_complete) && runs;
  });
}
const rebuild = () => runBridge(['rebuild', '--data-dir', data], { cwd: folder, timeoutMs: 60_000 });
const withoutAges = (runs: readonly Run[]) =>
  JSON.parse(JSON.stringify(runs, (key, value) => (/_at_humanized$|^href$/.test(key) ? null : value)));

it('answers after a rebuild as before, for real runs of several steps', async () => {
  const before = await complete(3);
  await bridge.stop();
  expect((await rebuild()).exitCode).toBe(0);
  bridge = await BridgeProcess.start({ dataFolder: data });
  expect(withoutAges(await complete(3))).toEqual(withoutAges(before));
});

it('keeps the numbers that run.json knows where the kept rows are lost, too', async () => {
  const before = await complete(3);
  await bridge.stop();
  rmSync(join(data, 'rows'), { recursive: true });
  expect((await rebuild()).exitCode).toBe(0);
  bridge = await BridgeProcess.start({ dataFolder: data });
  // The first run had no telemetry, so nothing tells of it any more.
  const after = await complete(2);
  const facts = ({ id, status, status_message, job, run_steps }: Run) => ({
    ...{ id, status, status_message, job: job.name },
    steps: run_steps.map(({ index, name, status: one }) => [index, name, one]),
  });
  expect(after.map(facts)).toEqual(before.slice(1).map(facts));
});
