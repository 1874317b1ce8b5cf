import { Router } from 'express';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { metricRouter } from '../../../src/metric/routes.js';
import { ApiServer } from '../../fake/api-server.js';
import { type Answer, send } from '../../fake/http-client.js';

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
/** As Prometheus 2 and 3 and a browser ask. */
const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

let server: ApiServer;
beforeEach(async () => {
  const router = Router().use(metricRouter({ read: async () => [{ name: 'run_bridge_ready', value: 1, labels: {} }] }));
  server = await ApiServer.open(() => [router], false);
});
afterEach(() => server.close());

function get(token: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return send(server.port, {
    method: 'GET',
    path: '/metrics',
    headers: { ...headers, authorization: `Bearer ${token}` },
  });
}

it.each([
  ['nothing', undefined, TEXT],
  ['anything', '*/*', TEXT],
  ['text', 'text/plain', TEXT],
  ['what is not offered', 'application/json', TEXT],
  ['what a browser takes', BROWSER, TEXT],
  ['OpenMetrics of any version', 'application/openmetrics-text', OPEN_METRICS],
  ['what Prometheus 2 takes', PROMETHEUS_2, OPEN_METRICS],
  ['what Prometheus 3 takes', PROMETHEUS_3, OPEN_METRICS],
])('answers a client that accepts %s', async (_what, accept, contentType) => {
  const answer = await get(await server.token('read_only'), accept === undefined ? {} : { accept });
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'content-type': contentType, 'cache-control': 'no-store', vary: 'Accept' },
  });
  expect(answer.body.toString()).toContain('run_bridge_ready 1\n');
});

it('tells nothing to tokens of other accounts, whatever they may do there', async () => {
  const answer = await get(await server.token('account_admin', { accountId: 20_002 }));
  expect(answer.status).toBe(403);
  expect(answer.body.toString()).toContain('require a token of the first account');
});
