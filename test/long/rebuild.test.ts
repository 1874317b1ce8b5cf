import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const ACCOUNT = '/api/v2/accounts/10001';

let dir: string;
let data: string;
let bridge: BridgeProcess | undefined;
vi.setConfig({ testTimeout: 90_000 });
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-rebuild-'));
  data = join(dir, 'data');
  writeFileSync(
    join(dir, 'run-bridge.yaml'),
    `projects: { shop: { id: 7001 } }
jobs:
  quick: { id: 7100, project: shop, command: ["sh -c 'echo made by quick'"] }
`,
  );
});
afterEach(async () => {
  await bridge?.stop('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function serve(): Promise<BridgeProcess> {
  bridge = await BridgeProcess.start({ dataFolder: data, args: ['--config', join(dir, 'run-bridge.yaml')] });
  return bridge;
}
async function ask(path: string, method = 'GET') {
  const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
  const answer = await fetch((bridge?.webUrl ?? '') + path, { method, headers: { authorization } });
  return JSON.parse(await answer.text());
}
/** What the API answers of everything there is, but for words on how long ago it was and ports. */
async function everything(): Promise<unknown> {
  const runs = await ask(`${ACCOUNT}/runs/?order_by=id&include_related=run_steps,job,environment,trigger`);
  const found: Record<string, unknown> = { runs, jobs: await ask(`${ACCOUNT}/jobs/`) };
  for (const { id, run_steps } of runs.data) {
    found[`run ${id}`] = await ask(`${ACCOUNT}/runs/${id}/?include_related=run_steps,debug_logs`);
    found[`own ${id}`] = await ask(`/api/run-bridge/v1/runs/${id}`);
    found[`nodes ${id}`] = await ask(`/api/run-bridge/v1/runs/${id}/nodes`);
    for (const step of run_steps) {
      found[`step ${step.id}`] = await ask(`${ACCOUNT}/steps/${step.id}/`);
      found[`artifacts ${step.id}`] = await ask(`${ACCOUNT}/runs/${id}/artifacts/?step=${step.index}`);
    }
  }
  const text = JSON.stringify(found, (key, value) => (/_at_humanized$/.test(key) ? null : value), 1);
  return JSON.parse(text.replaceAll(/127\.0\.0\.1:\d+/g, 'here'));
}
const allOver = () =>
  until('the end of all runs', async () => {
    const { data: runs } = await ask(`${ACCOUNT}/runs/`);
    return runs.every(({ is_complete }: { is_complete: boolean }) => is_complete);
  });

/** Runs of every kind: sent, imported, of two steps under a name of which one has no telemetry, of a job. */
async function fill(): Promise<void> {
  const { otlpUrl } = await serve();
  await sendSample(otlpUrl, 'build-mixed');
  const sample = new URL(`../../${SAMPLES}/parse/otel.jsonl`, import.meta.url).pathname;
  const exec = (...args: readonly string[]) =>
    runBridge(['exec', '--to', otlpUrl, '--data-dir', join(dir, 'own'), ...args], { cwd: dir });
  await exec('--run-id', 'night', '--job', 'nightly', '--reason', 'by hand', '--', 'sh', '-c', 'exit 3');
  await exec('--run-id', 'night', '--last', '--', 'true');
  await runBridge(['import', sample, '--to', otlpUrl], { cwd: dir });
  const { data: jobs } = await ask(`${ACCOUNT}/jobs/?name__icontains=quick`);
  await ask(`${ACCOUNT}/jobs/${jobs[0].id}/run/`, 'POST');
  await allOver();
}

test('the state is made anew from the data folder: the API answers as before, and numbers go on', async () => {
  await fill();
  const before = await everything();
  expect(JSON.stringify(before)).toContain('made by quick');
  expect(await runBridge(['rebuild', '--data-dir', data], { cwd: dir })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('is in use by process'),
  });
  await bridge?.stop();
  const { exitCode, stderr } = await runBridge(['rebuild', '--data-dir', data], { cwd: dir });
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringMatching(
      /^the state of before is kept as state\.db\.before-\S+\n4 runs with .*; 2 traces\nnot rebuilt, .*tokens/,
    ),
  ]);
  expect(readdirSync(data).filter((name) => name.startsWith('state.db.before-')).length).toBeGreaterThan(0);
  await serve();
  expect(await everything()).toEqual(before);
  const sample = new URL(`../../${SAMPLES}/parse/otel.jsonl`, import.meta.url).pathname;
  await runBridge(['import', sample, '--to', bridge?.otlpUrl ?? ''], { cwd: dir });
  await sendSample(bridge?.otlpUrl ?? '', 'build-clean');
  await until('the new run', async () => (await ask(`${ACCOUNT}/runs/`)).data.length === 5);
  const { data: runs } = await ask(`${ACCOUNT}/runs/?order_by=-id`);
  expect(runs.map(({ id }: { id: number }) => id)).toEqual([1005, 1004, 1003, 1002, 1001]);
});

test('a backup of a running bridge, restored into an empty folder, answers as the bridge did', async () => {
  await fill();
  const before = await everything();
  const copy = join(dir, 'copy');
  expect(await runBridge(['backup', copy, '--data-dir', data], { cwd: dir })).toMatchObject({ exitCode: 0 });
  await sendSample(bridge?.otlpUrl ?? '', 'build-clean');
  await bridge?.stop();
  rmSync(data, { recursive: true });
  data = join(dir, 'restored');
  expect(await runBridge(['restore', copy, '--data-dir', data], { cwd: dir })).toMatchObject({
    exitCode: 0,
    stderr: expect.stringMatching(/^restored .*restored: state\.db, 2 runs in \d+ files, \d+\.\d MB\n$/),
  });
  await serve();
  expect(await everything()).toEqual(before);
});

test('without the kept rows, runs are found again from run.json and record logs', async () => {
  await fill();
  await bridge?.stop('SIGKILL');
  rmSync(join(data, 'rows'), { recursive: true, force: true });
  expect(await runBridge(['rebuild', '--data-dir', data], { cwd: dir })).toMatchObject({
    exitCode: 0,
    stderr: expect.stringMatching(/^0 runs .*; 2 traces\n2 traces are looked at again/m),
  });
  await serve();
  await until('both runs', async () => (await ask(`${ACCOUNT}/runs/`)).data.length === 2);
  await allOver();
  const { data: runs } = await ask(`${ACCOUNT}/runs/`);
  expect(runs.map(({ status }: { status: number }) => status).toSorted()).toEqual([10, 20]);
});
