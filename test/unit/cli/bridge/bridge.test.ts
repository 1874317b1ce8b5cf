import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { askBridge } from '../../../../src/cli/bridge/bridge.js';
import { send } from '../../../fake/http-client.js';
import { RegistryServer } from '../../../fake/registry-server.js';

it('finds a bridge by one of its ports, and learns where the other one is', async () => {
  const server = await RegistryServer.open();
  try {
    expect(await askBridge(`${server.url}/`)).toEqual({
      version: '1.2.3',
      otlpUrl: 'http://127.0.0.1:4318',
      webUrl: server.url,
      pagesUrl: server.url,
      exportsTo: ['https://tempo:4318'],
      hasSignInLinks: true,
    });
  } finally {
    await server.close();
  }
});

it('is given the address by which it came where the bridge listens everywhere', async () => {
  const server = await RegistryServer.open('0.0.0.0');
  try {
    expect((await askBridge(server.url))?.otlpUrl).toBe('http://127.0.0.1:4318');
    const headers = { Host: 'bridge.example:8080' };
    const answer = await send(server.port, { method: 'GET', path: '/api/run-bridge/v1', headers });
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      name: 'run-bridge',
      port: 'web',
      otlp_url: 'http://bridge.example:4318',
    });
  } finally {
    await server.close();
  }
});

it('gives no address of pages that its own machine alone can reach', async () => {
  const about = {
    ...{ name: 'run-bridge', version: '1.2.3', port: 'otlp', exports_to: [] },
    ...{ otlp_url: 'http://0.0.0.0:4318', web_url: 'http://127.0.0.1:4380' },
  };
  let more = {};
  const server = createServer((_request, response) => response.end(JSON.stringify({ ...about, ...more })));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  // Another address of this machine, as of another one: not a loopback address by its name.
  const elsewhere = `http://0.0.0.0:${port}`;
  expect((await askBridge(elsewhere))?.pagesUrl).toBeNull();
  expect((await askBridge(`http://127.0.0.1:${port}`))?.pagesUrl).toBe('http://127.0.0.1:4380');
  more = { public_url: 'https://runs.example.com/' };
  expect((await askBridge(elsewhere))?.pagesUrl).toBe('https://runs.example.com');
  server.closeAllConnections();
  server.close();
});

it('finds none where nothing or something else answers, or no answer comes', async () => {
  expect(await askBridge('http://127.0.0.1:1')).toBeUndefined();
  expect(await askBridge('not a URL')).toBeUndefined();
  const other = createServer((request, response) => {
    if (request.url?.startsWith('/slow') !== true) response.end('{"name":"collector"}');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  expect(await askBridge(url)).toBeUndefined();
  expect(await askBridge(`${url}/slow`, 50)).toBeUndefined();
  other.closeAllConnections();
  other.close();
});
