import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { frame, GrpcClient } from '../fake/grpc-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';
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
