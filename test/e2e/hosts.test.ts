import { request } from 'node:http';
import { hostname } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { frame, GrpcClient } from '../fake/grpc-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';

let bridge: BridgeProcess;
beforeAll(async () => {
  bridge = await BridgeProcess.start({
    args: ['--allowed-hosts', 'runs.internal,.lan', '--public-url', 'https://runs.example.com'],
  });
});
afterAll(() => bridge.remove());

/** What a request for a path answers where it says another host. */
function answerFor(url: string, host: string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { headers: { host } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asking.on('error', reject);
    asking.end();
  });
}

it.each(['evil.example', 'rebound.evil.example:4318', 'lan'])('no port answers for %s', async (host) => {
  for (const url of [
    `${bridge.otlpUrl}/healthz`,
    `${bridge.otlpUrl}/v1/traces`,
    `${bridge.webUrl}/`,
    `${bridge.webUrl}/runs`,
  ]) {
    const { status, text } = await answerFor(url, host);
    expect([url, status]).toEqual([url, 421]);
    expect(text).toContain('allowed-hosts');
  }
  const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
  const answer = await client.call(frame(new Uint8Array()), undefined, { ':authority': host });
  client.destroy();
  expect(answer).toMatchObject({
    code: 7,
    headers: { ':status': 421 },
    message: expect.stringContaining('allowed-hosts'),
  });
});

it.each([
  'localhost:1',
  '127.0.0.1',
  '[::1]:9',
  'host.docker.internal',
  hostname(),
  'runs.internal',
  'a.lan',
  'runs.example.com',
])('every port answers for %s', async (host) => {
  expect((await answerFor(`${bridge.otlpUrl}/healthz`, host)).status).toBe(200);
  expect((await answerFor(`${bridge.webUrl}/healthz`, host)).status).toBe(200);
  const client = new GrpcClient(Number(new URL(bridge.grpcUrl).port));
  expect(await client.call(frame(new Uint8Array()), undefined, { ':authority': host })).toMatchObject({ code: 0 });
  client.destroy();
});
