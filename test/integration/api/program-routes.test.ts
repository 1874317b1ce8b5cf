import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Router } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ENDPOINT_TABLE,
  PAGE_TABLE,
  PUBLIC_ENDPOINTS,
  SENDER_TABLE,
  SIGN_IN_ENDPOINTS,
  TELEMETRY_ENDPOINTS,
} from '../../fake/endpoint-table.js';
import { serveInProcess } from '../../fake/serve-in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-routes-'));
/** Every route that is made while the program runs, wherever it is mounted. */
const made: ReturnType<Router['route']>[] = [];
const { route } = Router.prototype;
Router.prototype.route = function (path: string) {
  const one = route.call(this, path);
  made.push(one);
  return one;
};

/** `GET /healthz` and so on; `ALL` where every method is answered. */
let routes: readonly string[];
/** The same, as the program's own description has them. */
let described: readonly string[];
const documentSchema = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });
beforeAll(async () => {
  const served = await serveInProcess(['--otlp-auth', 'token', '--data-dir', folder], folder);
  // Routers whose code is loaded when somebody asks for them are made by these.
  const lazy = [
    '/sign-in',
    '/api/v2/accounts',
    '/api/run-bridge/v1/executions/finish',
    '/api/run-bridge/v1/runs/1/artifacts/a',
    '/metrics',
  ];
  for (const url of [served.webUrl, served.otlpUrl])
    for (const path of lazy) await fetch(url + path, { method: 'PUT' });
  const description = documentSchema.parse(await (await fetch(`${served.webUrl}/api/openapi.json`)).json());
  described = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  await served.stop();
  const spelt = made.flatMap(({ path, stack }) => {
    const methods = [...new Set(stack.map(({ method }) => (method ?? 'all').toUpperCase()))];
    // `app.all` names every method that there is.
    const named = methods.length > 20 ? ['ALL'] : methods;
    return [path].flat().flatMap((one) => named.map((method) => `${method} ${one}`));
  });
  routes = [...new Set(spelt)].sort();
});
afterAll(() => {
  Router.prototype.route = route;
  rmSync(folder, { recursive: true, force: true });
});

/** Whether a route only refuses to change what the configuration declares. */
function isRefused(route: string): boolean {
  return /^(POST|DELETE) \S+\/(jobs|projects|environments)(\/:\w+)?$/.test(route);
}

describe('the program', () => {
  it('answers nothing that is not in the table of permission sets and endpoints, and all that is', () => {
    const known = [
      ...Object.keys(ENDPOINT_TABLE),
      ...Object.keys(SENDER_TABLE),
      ...PUBLIC_ENDPOINTS,
      ...TELEMETRY_ENDPOINTS,
      ...Object.keys(PAGE_TABLE),
      ...SIGN_IN_ENDPOINTS,
    ];
    const others = TELEMETRY_ENDPOINTS.map((one) => one.replace('POST', 'ALL'));
    // `/` is a text for programs, and a page for browsers.
    expect(routes).toEqual([...new Set([...known, ...others])].sort());
  });

  it('describes in OpenAPI all that stands below /api', () => {
    const answered = routes
      .filter((one) => one.includes(' /api/') && !isRefused(one))
      .map((one) => one.replaceAll(/[:*]([A-Za-z]+)/g, '{$1}'));
    expect([...described].sort()).toEqual(answered.sort());
  });

  it('has all of that in the reference of the documentation', () => {
    const reference = readFileSync('docs/reference/api.md', 'utf8');
    expect(described.filter((one) => !reference.includes(`| \`${one}\` |`))).toEqual([]);
  });
});
