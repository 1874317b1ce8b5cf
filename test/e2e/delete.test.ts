import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SAMPLES, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

let dir: string;
let data: string;
const ended: (() => Promise<void>)[] = [];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-delete-'));
  data = join(dir, 'data');
  for (const name of ['build-clean', 'build-mixed']) {
    const file = resolve(SAMPLES, name, 'otel.jsonl');
    expect(await bridge('import', file)).toMatchObject({ exitCode: 0 });
  }
});
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
  rmSync(dir, { recursive: true, force: true });
});

const bridge = (...args: readonly string[]) => runBridge([...args, '--data-dir', data], { cwd: dir });
const listed = async () =>
  JSON.parse((await bridge('runs', '--format', 'json')).stdout).runs.map((one: { id: number }) => one.id);
const kept = () => traceIdsIn(data);

async function serve(env: Readonly<Record<string, string>> = {}): Promise<BridgeProcess> {
  const started = await BridgeProcess.start({ env, dataFolder: data });
  ended.push(async () => {
    await started.stop('SIGKILL');
  });
  return started;
}

describe('run-bridge delete', () => {
  test('removes a run from the folder, the list and queries, and leaves the others', async () => {
    const { exitCode, stdout } = await bridge('delete', '1001', '--yes');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'deleted 1 run: 1001\n' });
    expect(kept()).toEqual([sampleTraceId('build-mixed')]);
    expect(readdirSync(join(data, 'removed'))).toEqual([]);
    expect(existsSync(join(data, 'rows', '1001.json'))).toBe(false);
    expect(await listed()).toEqual([1002]);
    const asked = await bridge('query', 'select distinct trace_id from nodes', '--csv');
    expect(asked.stdout).toContain(sampleTraceId('build-mixed'));
    expect(asked.stdout).not.toContain(sampleTraceId('build-clean'));
    expect(await bridge('delete', '1001', '--yes')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no run 1001 is known'),
    });
  });

  test('has a bridge that uses the folder do it, and leaves no token behind that is good', async () => {
    const { webUrl } = await serve();
    expect(await bridge('delete', '1002', '--yes')).toMatchObject({ exitCode: 0, stdout: 'deleted 1 run: 1002\n' });
    expect(kept()).toEqual([sampleTraceId('build-clean')]);
    const authorization = `Token ${readFileSync(join(data, 'admin-token'), 'utf8').trim()}`;
    const at = (path: string, method = 'GET') => fetch(`${webUrl}${path}`, { method, headers: { authorization } });
    expect((await at('/api/run-bridge/v1/runs/1002')).status).toBe(404);
    expect((await bridge('token', 'list')).stdout).toMatch(/run-bridge delete 1002 +admin .*revoked/);
    const answer = await at('/api/run-bridge/v1/runs/1001', 'DELETE');
    expect([answer.status, await answer.json()]).toMatchObject([200, { data: { removed_run_ids: [1001] } }]);
    expect([kept(), await listed()]).toEqual([[], []]);
  });

  test('says what a bridge elsewhere says: that a destination waits for the run', async () => {
    const { webUrl, otlpUrl } = await serve({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
    const file = resolve(SAMPLES, 'interrupted', 'otel.jsonl');
    await runBridge(['import', file, '--to', otlpUrl], { cwd: dir });
    await until('the run', async () => (await listed()).includes(1003));
    const token = readFileSync(join(data, 'admin-token'), 'utf8').trim();
    const elsewhere = (to: string, env: Readonly<Record<string, string>>) =>
      runBridge(['delete', '1003', '--yes', '--to', to], { cwd: dir, env });
    await until('its end', async () =>
      (await elsewhere(webUrl, { RUN_BRIDGE_TOKEN: token })).stderr.includes(
        'A destination has not got all of run 1003 yet: wait until it has',
      ),
    );
    expect(await elsewhere(webUrl, {})).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('RUN_BRIDGE_TOKEN'),
    });
    expect(await listed()).toContain(1003);
  });

  test('asks on a terminal, and wants --yes elsewhere', async () => {
    expect(await bridge('delete', '1001')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--yes') });
    expect(await bridge('delete', 'nightly', '--yes')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('neither the number of a run nor a trace id'),
    });
    const command = [process.execPath, 'dist/main.js', 'delete', '1001', '--data-dir', data];
    const typed = (key: string) =>
      JSON.parse(execFileSync('python3', ['test/tool/terminal.py', key, ...command], { encoding: 'utf8' }));
    expect(typed('type')).toMatchObject({ exit: 1, output: expect.stringContaining('nothing was deleted') });
    expect(await listed()).toHaveLength(2);
    expect(typed('yes')).toMatchObject({ exit: 0, output: expect.stringContaining('deleted 1 run: 1001') });
    expect(await listed()).toEqual([1002]);
  });
});
