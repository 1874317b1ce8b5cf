import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { frame, GrpcClient, LOGS_PATH, TRACES_PATH } from '../fake/grpc-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const ended: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function start(...args: string[]): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args });
  ended.push(() => bridge.remove());
  return bridge;
}

const tokenFile = (bridge: BridgeProcess) => join(bridge.dataFolder, 'admin-token');

async function status(url: string, token?: string, init: RequestInit = {}): Promise<number> {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  return (await fetch(url, { ...init, headers })).status;
}

describe('tokens', () => {
  test('are asked for by the API alone where nothing was set up; the first start leaves one to its user alone', async () => {
    const bridge = await start();
    const token = readFileSync(tokenFile(bridge), 'utf8');
    expect(token).toMatch(/^rbt_[\w-]{43}\n$/);
    expect(statSync(tokenFile(bridge)).mode & 0o777).toBe(0o600);
    expect(bridge.stderr).toContain(`token     one for everything is in ${tokenFile(bridge)};`);
    expect(bridge.stdout + bridge.stderr).not.toContain(token.trim());
    expect(await status(`${bridge.webUrl}/api/v2/nothing`)).toBe(401);
    expect(await status(`${bridge.webUrl}/api/v2/nothing`, token.trim())).toBe(404);
    expect(await status(`${bridge.otlpUrl}/v1/traces`, undefined, { method: 'POST', body: '{}' })).toBe(200);
    const finish = { method: 'POST', body: '{"run_key":"none"}' };
    expect(await status(`${bridge.webUrl}/api/run-bridge/v1/executions/finish`, undefined, finish)).toBe(404);
  });

  test('are asked for by every receiver where that is set, and what hands over sends them', async () => {
    const bridge = await start('--otlp-auth', 'token', '--log-format', 'json');
    const token = readFileSync(tokenFile(bridge), 'utf8').trim();
    const traces = { method: 'POST', body: '{}' };
    expect(await status(`${bridge.otlpUrl}/v1/traces`, undefined, traces)).toBe(401);
    expect(await status(`${bridge.otlpUrl}/v1/traces`, `${token}x`, traces)).toBe(401);
    expect(await status(`${bridge.otlpUrl}/v1/traces`, token, traces)).toBe(200);
    const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
    ended.push(() => client.destroy());
    const nothing = frame(new Uint8Array());
    expect(await client.call(nothing)).toMatchObject({ code: 16, message: expect.stringContaining('token') });
    expect(await client.call(nothing, undefined, { authorization: `Bearer ${token}` })).toMatchObject({ code: 0 });
    for (const url of [bridge.otlpUrl, bridge.webUrl]) {
      const finish = `${url}/api/run-bridge/v1/executions/finish`;
      expect(await status(finish, undefined, { method: 'POST', body: '{"run_key":"x"}' })).toBe(401);
      expect(await status(`${url}/readyz`)).toBe(200);
    }

    const exec = (env: Record<string, string>) => {
      const args = ['exec', '--to', bridge.webUrl, '--run-id', 'night', '--', process.execPath, '-e', ''];
      return runBridge(args, { cwd: bridge.dataFolder, env });
    };
    expect(await exec({ RUN_BRIDGE_TOKEN: token })).toMatchObject({ exitCode: 0 });
    const finish = ['finish', 'night', '--to', bridge.webUrl];
    expect(await runBridge(finish, { cwd: bridge.dataFolder })).toMatchObject({
      exitCode: 1,
      stderr: `run-bridge: the bridge at ${bridge.webUrl} asks for a token: set RUN_BRIDGE_TOKEN to one that is good there\n`,
    });
    const env = { OTEL_EXPORTER_OTLP_HEADERS: `Authorization=Bearer ${token}` };
    expect(await runBridge(finish, { cwd: bridge.dataFolder, env })).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('is finished: 1 step'),
    });
  });

  test.each([
    ['asks for one', ['--otlp-auth', 'token']],
    ['is open', []],
  ])('say whose telemetry is, where the address %s', async (_kind, args) => {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-tokens-'));
    ended.push(() => rmSync(folder, { recursive: true, force: true }));
    const config = join(folder, 'run-bridge.yaml');
    writeFileSync(config, 'jobs: { nightly: { command: [dbt build --secret-selector x] } }\n');
    const bridge = await start('--config', config, ...args);
    const own = readFileSync(tokenFile(bridge), 'utf8').trim();
    const create = ['token', 'create', '--name', 'b', '--permission', 'developer', '--new-account', 'finance'];
    const made = await runBridge([...create, '--data-dir', bridge.dataFolder], { cwd: bridge.dataFolder });
    expect(made).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('for account 10002') });
    const other = made.stdout.trim();
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const [ofFirst, overHttp, overGrpc] = [new SentRun(), new SentRun(), new SentRun()];
    await ofFirst.send(bridge.otlpUrl, undefined, bearer(own));
    await overHttp.send(bridge.otlpUrl, undefined, bearer(other));
    const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
    ended.push(() => client.destroy());
    for (const { signal, bytes } of overGrpc.bodies) {
      const path = signal === 'traces' ? TRACES_PATH : LOGS_PATH;
      expect(await client.call(frame(bytes), path, bearer(other))).toMatchObject({ code: 0 });
    }
    const exec = [
      'exec',
      '--to',
      bridge.webUrl,
      '--run-id',
      'night',
      '--job',
      'nightly',
      '--',
      process.execPath,
      '-e',
      '',
    ];
    const env = { RUN_BRIDGE_TOKEN: other };
    expect(await runBridge(exec, { cwd: bridge.dataFolder, env })).toMatchObject({ exitCode: 0 });
    const finish = ['finish', 'night', '--to', bridge.webUrl];
    const elsewhere = { cwd: bridge.dataFolder, env: { RUN_BRIDGE_TOKEN: own } };
    expect(await runBridge(finish, elsewhere)).toMatchObject({ exitCode: 1 });
    expect(await runBridge(finish, { cwd: bridge.dataFolder, env })).toMatchObject({ exitCode: 0 });
    for (const { traceId } of [ofFirst, overHttp, overGrpc]) await bridge.finished(traceId);

    const answer = async (path: string, token: string, init: RequestInit = {}) => {
      const headers = { 'content-type': 'application/json', ...bearer(token) };
      return z
        .looseObject({ data: z.unknown() })
        .parse(await (await fetch(bridge.webUrl + path, { ...init, headers })).json());
    };
    const tracesOf = async (token: string) => {
      const init = {
        method: 'POST',
        body: JSON.stringify({ sql: 'SELECT DISTINCT trace_id FROM records ORDER BY 1' }),
      };
      const { data } = await answer('/api/run-bridge/v1/query', token, init);
      return z
        .object({ rows: z.array(z.array(z.string())) })
        .parse(data)
        .rows.flat();
    };
    const runs = z.array(z.looseObject({ id: z.number(), account_id: z.number() }));
    await until('the runs', async () => {
      const { data } = await answer('/api/v2/accounts/10002/runs?status__in=[10]', other);
      return runs.parse(data).length === 3;
    });
    expect(runs.parse((await answer('/api/v2/accounts/10001/runs/', own)).data)).toHaveLength(1);
    for (const { traceId } of [overHttp, overGrpc]) {
      const path = `/api/run-bridge/v1/runs/${traceId}`;
      expect(await status(bridge.webUrl + path, own)).toBe(404);
      const { data } = await answer(path, other);
      expect(data).toMatchObject({ account_id: 10_002, job: { name: 'adhoc' } });
    }
    expect(await status(`${bridge.webUrl}/api/run-bridge/v1/runs/${ofFirst.traceId}`, other)).toBe(404);
    // The job of that name that the configuration declares is the first account's.
    const jobs = z.array(z.looseObject({ id: z.number(), name: z.string(), execute_steps: z.array(z.string()) }));
    const theirs = jobs.parse((await answer('/api/v2/accounts/10002/jobs?name__icontains=night', other)).data);
    expect(theirs).toMatchObject([{ name: 'nightly', execute_steps: [] }]);
    const run = `${bridge.webUrl}/api/v2/accounts/10002/jobs/${theirs[0]?.id}/run/`;
    expect(await status(run, other, { method: 'POST', body: '{}' })).toBe(409);
    const declared = jobs.parse((await answer('/api/v2/accounts/10001/jobs?name__icontains=night', own)).data);
    expect(declared).toMatchObject([{ execute_steps: ['dbt build --secret-selector x'] }]);
    expect(await tracesOf(own)).toEqual([ofFirst.traceId]);
    expect(await tracesOf(other)).toEqual([overHttp.traceId, overGrpc.traceId].sort());
  });

  test('are made and revoked while a server runs', async () => {
    const bridge = await start();
    const run = (...args: string[]) =>
      runBridge(['token', ...args, '--data-dir', bridge.dataFolder], { cwd: bridge.dataFolder });
    const token = (await run('create', '--name', 'a', '--permission', 'analyst')).stdout.trim();
    expect(await status(`${bridge.webUrl}/api/v2/nothing`, token)).toBe(404);
    expect((await run('revoke', '1002')).exitCode).toBe(0);
    await until(
      'the token to be refused',
      async () => (await status(`${bridge.webUrl}/api/v2/nothing`, token)) === 401,
    );
    expect((await run('list')).stdout).toMatch(/1002 +a +analyst .* revoked /);
  });
});
