import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Router } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { aboutRouter } from '../../../src/api/about-router.js';
import { artifactRouter, contentTypeOf } from '../../../src/artifact/downloads.js';
import { RunArtifacts } from '../../../src/artifact/run-artifacts.js';
import { uploadRouter } from '../../../src/artifact/uploads.js';
import { STEP_LIMITS } from '../../../src/storage/artifacts.js';
import { executionRouter } from '../../../src/web/execution-router.js';
import { send } from '../../fake/http-client.js';
import { type OwnApi, openOwnApi } from '../../fake/own-api.js';

const documentSchema = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses: z.record(z.string(), z.unknown()) }))),
});
let api: OwnApi;
let token: string;
let document: z.output<typeof documentSchema>;
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

beforeAll(async () => {
  api = await openOwnApi(['build-mixed', 'build-clean']);
  token = await api.server.token();
  document = documentSchema.parse((await api.server.ask('GET', '/api/openapi.json')).body);
  ajv.addSchema(document, 'api');
});
afterAll(() => api.close());

/** Every route of these routers, spelt as the description spells it: `GET /api/…/{id}`. */
function routesOf(routers: readonly Router[]): string[] {
  return routers.flatMap(({ stack }) =>
    stack.flatMap(({ route, handle }) => {
      if (route === undefined) return 'stack' in handle ? routesOf([handle as Router]) : [];
      const path = String(route.path)
        .replaceAll(/[:*]([A-Za-z]+)/g, '{$1}')
        .replace(/\/$/, '');
      const methods = new Set(route.stack.map(({ method }) => method.toUpperCase()));
      return [...methods].map((method) => `${method} ${path}`);
    }),
  );
}

/** Whether a route only refuses to change what the configuration declares. */
function isRefused(route: string): boolean {
  return /^(POST|DELETE) \S+\/(jobs|projects|environments)(\/\{\w+\})?$/.test(route);
}

/** Whether an answer's body is what the description says of it; else what is wrong. */
function problemsOf(path: string, method: string, status: number, body: unknown): unknown {
  const pointer = [path, method, 'responses', String(status), 'content', 'application/json', 'schema']
    .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/');
  // Compiled once.
  const validate = ajv.getSchema(`api#/paths/${pointer}`);
  if (validate === undefined) throw new Error(`${method} ${path} does not say that it answers ${status}`);
  return validate(body) ? null : validate.errors;
}

const RUN = '/api/run-bridge/v1/runs/{id}';
const good = () => ({ authorization: `Token ${token}` });

describe('the description of the API', () => {
  it('has every route that is mounted, and no other', () => {
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const nothing = () => {
      throw new Error('not asked');
    };
    const about = { version: '', otlpAddress: nothing, webAddress: nothing, publicUrl: null, exportsTo: [] };
    const registry = {
      ...{ register: nothing, attach: nothing, end: nothing, finish: nothing, isCancelled: nothing },
      ...{ expectArtifacts: nothing, endArtifacts: nothing },
    };
    const { logger, state } = api.server;
    const artifacts = new RunArtifacts({ catalog: state.catalog, openStore: nothing, dataFolder: api.dataFolder });
    const guard = { findShortage: () => undefined };
    const limits = { ...STEP_LIMITS, maxFileBytes: 1 };
    const beside = [
      aboutRouter(about, 'web'),
      executionRouter({ registry, logger }),
      artifactRouter({ artifacts, logger }),
      uploadRouter(limits, { artifacts, openStore: nothing, guard, logger }),
    ];
    const mounted = routesOf([...api.routers, ...beside]).filter((one) => !isRefused(one));
    expect(mounted.sort()).toEqual(listed.sort());
  });

  it('is OpenAPI 3.1, and says of every answer what it holds', () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    for (const methods of Object.values(document.paths)) {
      for (const { responses } of Object.values(methods)) expect(Object.keys(responses).length).toBeGreaterThan(0);
    }
  });

  it.each([
    [RUN, 'get', '/api/run-bridge/v1/runs/1001', 200],
    [`${RUN}/nodes`, 'get', '/api/run-bridge/v1/runs/1001/nodes', 200],
    [`${RUN}/measures`, 'get', '/api/run-bridge/v1/runs/1002/measures/', 200],
    [`${RUN}/records`, 'get', '/api/run-bridge/v1/runs/1001/records?limit=1000', 200],
    [`${RUN}/records`, 'get', '/api/run-bridge/v1/runs/1001/records?limit=x', 400],
    [`${RUN}/nodes`, 'get', '/api/run-bridge/v1/runs/1/nodes', 404],
    ['/api/openapi.json', 'get', '/api/openapi.json', 200],
    ['/api/v2/accounts', 'get', '/api/v2/accounts/', 200],
    ['/api/v2/accounts/{accountId}', 'get', '/api/v2/accounts/10001', 200],
    ['/api/v2/accounts/{accountId}', 'get', '/api/v2/accounts/1', 404],
    [
      '/api/v2/accounts/{accountId}/runs',
      'get',
      '/api/v2/accounts/10001/runs/?include_related=run_steps,job,trigger,environment',
      200,
    ],
    ['/api/v2/accounts/{accountId}/runs', 'get', '/api/v2/accounts/10001/runs/?limit=x', 400],
    [
      '/api/v2/accounts/{accountId}/runs/{runId}',
      'get',
      '/api/v2/accounts/10001/runs/1001/?include_related=["run_steps"]',
      200,
    ],
    ['/api/v2/accounts/{accountId}/jobs', 'get', '/api/v2/accounts/10001/jobs/', 200],
  ])('%s %s is answered as it says: %s', async (path, method, asked, status) => {
    const answer = await api.server.ask(method.toUpperCase(), asked, token);
    expect(answer.status).toBe(status);
    expect(problemsOf(path, method, status, answer.body)).toBeNull();
  });

  it('says of every endpoint how it refuses what it refuses', async () => {
    const weak = await api.server.token('webhooks_only');
    const weaker = await api.server.token('read_only');
    const json = { 'content-type': 'application/json' };
    const sent = [
      { headers: {} },
      { headers: { authorization: 'Token ?' } },
      { headers: { authorization: `Token ${weak}` } },
      { headers: { authorization: `Token ${weaker}` } },
      { headers: { ...good() } },
      { headers: { ...good(), ...json }, body: '{' },
      { headers: { ...good(), ...json }, body: '[]' },
      { headers: { ...good(), ...json }, body: '{"cause":7,"sql":7,"limit":"x","since":1}' },
      { headers: { ...good(), ...json }, body: JSON.stringify({ cause: 'x'.repeat(600_000) }) },
      { headers: { ...good(), 'content-type': 'application/json; charset=x' }, body: '{}' },
      { headers: { ...good(), ...json, 'content-encoding': 'x' }, body: '{}' },
    ];
    const statuses = new Set<number>();
    for (const one of routesOf(api.routers).filter((route) => !isRefused(route))) {
      const [method = '', path = ''] = one.split(' ');
      const asked = path.replace('{accountId}', '10001').replaceAll(/\{\w+\}/g, '999999');
      const paths = [
        asked,
        `${asked}?limit=x&step=x`,
        path.replaceAll(/\{\w+\}/g, '%zz'),
        path.replaceAll(/\{\w+\}/g, '7'),
      ];
      for (const at of paths) {
        for (const { headers, body } of sent) {
          if (body !== undefined && !['POST', 'PUT', 'PATCH'].includes(method)) continue;
          const answer = await send(api.server.port, {
            method,
            path: at,
            headers,
            ...(body && { body: Buffer.from(body) }),
          });
          if (answer.status < 400) continue;
          statuses.add(answer.status);
          const problems = problemsOf(path, method.toLowerCase(), answer.status, JSON.parse(answer.body.toString()));
          expect([one, at, body?.slice(0, 80), answer.status, problems]).toEqual([
            one,
            at,
            body?.slice(0, 80),
            answer.status,
            null,
          ]);
        }
      }
      // Failed tries come back with time.
      api.server.clock.advance(60_000);
    }
    expect([...statuses].sort()).toEqual([400, 401, 403, 404, 413, 415]);
    // One request for each refusal of each endpoint: 23 s where other tests run at the same time.
  });

  it.each(['a.json', 'a.jsonl', 'a.parquet', 'a.sql', 'a.csv', 'a.log', 'a.yml', 'a.html', 'a'])(
    'names the type of the artifact %s',
    (name) => {
      const { responses } = document.paths['/api/v2/accounts/{accountId}/runs/{runId}/artifacts/{path}']?.get ?? {};
      for (const status of ['200', '206']) {
        const { content } = z.looseObject({ content: z.record(z.string(), z.unknown()) }).parse(responses?.[status]);
        expect(Object.keys(content)).toContain(contentTypeOf(name).replace(/;.*$/, ''));
      }
    },
  );

  it('says what webhooks are answered with', async () => {
    const all = '/api/v3/accounts/{accountId}/webhooks/subscriptions';
    const one = '/api/v3/accounts/{accountId}/webhooks/subscription/{webhookId}';
    const own = '/api/run-bridge/v1/webhooks';
    const input = { name: 'n', client_url: 'http://127.0.0.1:1/', event_types: ['job.run.started'] };
    const asked = async (method: string, path: string, at: string, status: number, body?: unknown) => {
      const answer = await api.server.ask(method.toUpperCase(), at, token, body);
      expect([answer.status, problemsOf(path, method, status, answer.body)], at).toEqual([status, null]);
      return answer.body;
    };
    const made = await asked('post', all, '/api/v3/accounts/10001/webhooks/subscriptions', 201, input);
    const { id } = z.object({ data: z.looseObject({ id: z.string() }) }).parse(made).data;
    const at = `/api/v3/accounts/10001/webhooks/subscription/${id}`;
    await asked('post', all, '/api/v3/accounts/10001/webhooks/subscriptions', 400, {});
    await asked('get', all, '/api/v3/accounts/10001/webhooks/subscriptions', 200);
    await asked('get', one, at, 200);
    await asked('put', one, at, 200, { name: 'm' });
    await asked('get', `${one}/test`, `${at}/test`, 200);
    await asked('get', `${one}/events`, `${at}/events`, 200);
    await asked('get', `${one}/event/{eventId}/receipt`, `${at}/event/x/receipt`, 404);
    await asked('get', own, own, 200);
    await asked('get', `${own}/{webhookId}`, `${own}/${id}`, 200);
    await asked('patch', `${own}/{webhookId}`, `${own}/${id}`, 200, { filters: { statuses: ['errored'] } });
    await asked('post', `${own}/{webhookId}/secret`, `${own}/${id}/secret`, 200, {});
    await asked('delete', `${own}/{webhookId}/old-secret`, `${own}/${id}/old-secret`, 200);
    await asked('get', `${own}/{webhookId}/preview`, `${own}/${id}/preview`, 200);
    await asked('post', `${own}/replay`, `${own}/replay`, 200, { since: '2026-01-01T00:00:00Z' });
    await asked('delete', one, at, 200);
  });

  it('says what SQL is answered with, rows and errors', async () => {
    const path = '/api/run-bridge/v1/query';
    for (const [sql, status] of [
      ['SELECT * FROM nodes', 200],
      ['DROP VIEW nodes', 400],
    ] as const) {
      const answer = await api.server.ask('POST', path, token, { sql });
      expect([answer.status, problemsOf(path, 'post', status, answer.body)]).toEqual([status, null]);
    }
  });

  it('says what is answered without a token, or with one of too few rights', async () => {
    const without = await api.server.ask('GET', '/api/run-bridge/v1/runs/1001');
    expect([without.status, problemsOf(RUN, 'get', 401, without.body)]).toEqual([401, null]);
    const weak = await api.server.ask('POST', '/api/run-bridge/v1/query', await api.server.token('read_only'), {
      sql: 'FROM runs',
    });
    expect(problemsOf(RUN, 'get', 200, weak.body)).not.toBeNull();
    expect([weak.status, problemsOf('/api/run-bridge/v1/query', 'post', 403, weak.body)]).toEqual([403, null]);
  });
});
