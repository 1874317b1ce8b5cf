import { Router } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { PERMISSIONS, type Right } from '../../../src/api/permissions.js';
import { OpenGate, TokenGate } from '../../../src/api/sender-gates.js';
import { apiRouters } from '../../../src/app/api-routers.js';
import { artifactRouter } from '../../../src/artifact/downloads.js';
import { FolderArtifactStore } from '../../../src/artifact/folder-artifact-store.js';
import { RunArtifacts } from '../../../src/artifact/run-artifacts.js';
import { uploadRouter } from '../../../src/artifact/uploads.js';
import type { SenderGate } from '../../../src/core/sender-gate.js';
import { createResend } from '../../../src/export/feature.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { metricRouter } from '../../../src/metric/routes.js';
import { createPlatformApi } from '../../../src/platform/feature.js';
import { createQueries } from '../../../src/query/feature.js';
import { LocalStepRegistry } from '../../../src/run/local-step-registry.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { STEP_LIMITS } from '../../../src/storage/artifacts.js';
import { PERMISSION_SETS, type PermissionSet } from '../../../src/storage/state-tables.js';
import { executionRouter } from '../../../src/web/execution-router.js';
import { type ApiAnswer, ApiServer } from '../../fake/api-server.js';
import { ENDPOINT_TABLE, endpointsOf, SENDER_TABLE } from '../../fake/endpoint-table.js';
import { idleJobs } from '../../fake/idle-jobs.js';
import { idleRetention } from '../../fake/idle-retention.js';
import { mountedRoutes } from '../../fake/mounted-routes.js';
import { webhookParts } from '../../fake/webhook-parts.js';

/** What docs/operate.md says. */
const RIGHTS: Readonly<Record<Right, string>> = {
  'runs:read': 'account_admin admin developer analyst read_only',
  'artifacts:read': 'account_admin admin developer analyst read_only',
  'artifacts:write': 'account_admin admin developer sender',
  'jobs:read': 'account_admin admin developer analyst read_only',
  'jobs:run': 'account_admin admin developer',
  'runs:cancel': 'account_admin admin developer',
  'runs:delete': 'account_admin admin',
  query: 'account_admin admin developer analyst',
  'webhooks:read': 'account_admin admin developer webhooks_only read_only',
  'webhooks:write': 'account_admin admin developer webhooks_only',
  'tokens:manage': 'account_admin',
  'telemetry:write': 'account_admin admin developer sender',
  'metrics:read': 'account_admin admin developer analyst read_only sender',
};
const ENDPOINTS = endpointsOf(ENDPOINT_TABLE);
const SENDER_ENDPOINTS = endpointsOf(SENDER_TABLE);

let routers: readonly Router[];
let server: ApiServer;
/** The same routers at an address that takes telemetry without a token. */
let open: ApiServer;
const secrets = new Map<PermissionSet, string>();
let bad: readonly (readonly [string, string])[];
beforeAll(async () => {
  const later = Router();
  server = await ApiServer.open(
    () => [later],
    false,
    (one) => [executions(one, new TokenGate(one.authenticator))],
  );
  open = await ApiServer.open(
    () => [later],
    true,
    (one) => [executions(one, new OpenGate(one.authenticator))],
  );
  const { state, folder, clock } = server;
  const reader = new RecordLogFiles(folder, () => {});
  const jobs = idleJobs(state, clock);
  const stopping = new AbortController().signal;
  const queries = createQueries(
    { 'data-dir': folder },
    { state, shared: undefined, clock, stopping, version: '0.0.0' },
  );
  const platform = createPlatformApi({ redaction: 'literals', 'public-url': 'off' }, { state, reader, jobs, clock });
  const resend = createResend({ processes: 'one' }, { state, exports: undefined, version: '0.0.0' });
  const features = [platform, jobs, webhookParts(state, clock), queries, idleRetention(state, clock, folder), resend];
  const own = {
    notes: { listSetAside: async () => [] },
    measures: { ofSteps: async () => [] },
    redaction: 'literals',
    stopping,
    version: '0.0.0',
  } as const;
  const openStore = async () => new FolderArtifactStore(folder);
  const artifacts = new RunArtifacts({ catalog: state.catalog, openStore, dataFolder: folder });
  const guard = { findShortage: () => undefined };
  const limits = { ...STEP_LIMITS, maxFileBytes: 1_000 };
  routers = [
    ...(await apiRouters({ state, reader, features, clock, ...own })),
    artifactRouter({ artifacts, logger: server.logger }),
    uploadRouter(limits, { artifacts, openStore, guard, logger: server.logger }),
    metricRouter({ read: async () => [] }),
  ];
  for (const one of routers) later.use(one);
  for (const set of PERMISSION_SETS) secrets.set(set, await server.token(set));
  const nowUnixMs = clock.nowUnixMs();
  const revoked = await server.token('account_admin');
  await state.tokens.revoke((await state.tokens.list()).at(-1)?.id ?? 0, nowUnixMs);
  bad = [
    ['expired', await server.token('account_admin', { expiresUnixMs: nowUnixMs })],
    ['revoked', revoked],
    ['unknown', `rbt_${'A'.repeat(43)}`],
    ['malformed', '?'],
  ];
});
afterAll(async () => {
  await server.close();
  await open.close();
});

function executions({ state, clock, logger }: ApiServer, gate: SenderGate): Router {
  const { executions: store, runs } = state;
  return executionRouter({
    registry: new LocalStepRegistry({ store, runs, listeners: [], clock, logger }),
    logger,
    gate,
  });
}

function runOf({ body }: ApiAnswer): number {
  return z.looseObject({ run_id: z.number() }).parse(body).run_id;
}

/** A path with ids that nothing has. */
function filled(path: string, accountId = 10_001): string {
  return path.replace(':accountId', String(accountId)).replaceAll(/[:*]\w+/g, '999999');
}

describe('the table of permission sets and endpoints', () => {
  it('has every endpoint that is mounted, and each has its guard', () => {
    const routes = mountedRoutes(routers).filter(({ path }) => path !== '/api/openapi.json');
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(ENDPOINT_TABLE).sort());
    expect(routes.filter(({ right }) => right === undefined)).toEqual([]);
  });

  it.each(ENDPOINTS)('$name lets in who may, and says 403 to everybody else', async ({ method, path, sets }) => {
    for (const set of PERMISSION_SETS) {
      const { status } = await server.ask(method, filled(path), secrets.get(set));
      if (sets.includes(set)) expect([401, 403], set).not.toContain(status);
      else expect(status, set).toBe(403);
    }
  });

  it.each(ENDPOINTS)('$name is refused without a good token, in one answer whatever is wrong with it', async (one) => {
    expect((await server.ask(one.method, filled(one.path))).status).toBe(401);
    for (const [kind, secret] of bad) {
      // Failed tries come back with time.
      server.clock.advance(60_000);
      const { status, body, headers } = await server.ask(one.method, filled(one.path), secret);
      expect({ status, body, type: headers['content-type'] }, kind).toEqual({
        status: 401,
        body: {
          status: { code: 401, is_success: false, user_message: 'Invalid token.', developer_message: null },
          data: null,
        },
        type: 'application/json; charset=utf-8',
      });
    }
  });

  it.each(ENDPOINTS.filter(({ path }) => path.includes(':accountId')))(
    '$name of another account is as one that does not exist',
    async ({ method, path }) => {
      const passthrough = await server.token('account_admin', { accountId: 20_002 });
      const answers = [await server.ask(method, filled(path), passthrough)];
      for (const set of PERMISSION_SETS) {
        answers.push(await server.ask(method, filled(path, 20_002), secrets.get(set)));
        answers.push(await server.ask(method, filled(path, 7), secrets.get(set)));
      }
      const message = 'The requested resource was not found.';
      for (const { status, body } of answers) {
        expect(status).toBe(404);
        expect(body).toMatchObject({ status: { code: 404, user_message: message }, data: null });
      }
    },
  );

  it.each(ENDPOINTS)('$name gives a sender without a token nothing but what senders may', async ({ method, path }) => {
    const right = mountedRoutes(routers).find((route) => route.method === method && route.path === path)?.right;
    const { status } = await open.ask(method, filled(path));
    if (PERMISSIONS.sender.some((one) => one === right)) expect([401, 403]).not.toContain(status);
    else expect(status).toBe(401);
  });
});

describe('the endpoints for those who run commands elsewhere', () => {
  it.each(SENDER_ENDPOINTS)('$name lets in who may send telemetry, and says 403 to everybody else', async (one) => {
    for (const set of PERMISSION_SETS) {
      const { status } = await server.ask(one.method, filled(one.path), secrets.get(set), {});
      if (one.sets.includes(set)) expect([401, 403], set).not.toContain(status);
      else expect(status, set).toBe(403);
    }
  });

  it.each(SENDER_ENDPOINTS)('$name is refused without a good token, in one answer', async ({ method, path }) => {
    expect((await server.ask(method, filled(path))).status).toBe(401);
    for (const [kind, secret] of bad) {
      server.clock.advance(60_000);
      const { status, body } = await server.ask(method, filled(path), secret, {});
      const error = { code: 'unauthenticated', message: 'Invalid token.' };
      expect({ status, body }, kind).toEqual({ status: 401, body: { error } });
    }
  });

  it.each(SENDER_ENDPOINTS)('$name takes everybody where telemetry needs no token', async ({ method, path }) => {
    expect([401, 403]).not.toContain((await open.ask(method, filled(path), undefined, {})).status);
  });

  it('know the steps of one account each, by the names that it gave them', async () => {
    const [own, passthrough] = [await server.token('admin'), await server.token('admin', { accountId: 20_002 })];
    const step = '/api/run-bridge/v1/executions/steps/same';
    const start = { command: ['dbt', 'build'], started_unix_ms: 1_000, run_key: 'night' };
    const first = runOf(await server.ask('PUT', step, own, start));
    const second = runOf(await server.ask('PUT', step, passthrough, start));
    expect(second).not.toBe(first);
    const end = { ending: { kind: 'exited', exit_code: 0 }, ended_unix_ms: 2_000 };
    expect((await server.ask('PUT', `${step}/end`, passthrough, end)).status).toBe(204);
    const stepOf = (runId: number) => server.state.executions.listSteps(runId);
    expect(await stepOf(first)).toMatchObject([{ stepId: 'same', ending: null }]);
    expect(await stepOf(second)).toMatchObject([{ stepId: '20002/same', ending: { kind: 'exited' } }]);
    expect(await server.state.catalog.findRun(20_002, second)).toMatchObject({ id: second });
    expect(await server.state.catalog.findRun(FIRST_ACCOUNT_ID, second)).toBeUndefined();

    await server.ask('PUT', '/api/run-bridge/v1/executions/steps/theirs', passthrough, start);
    expect((await server.ask('PUT', '/api/run-bridge/v1/executions/steps/theirs/end', own, end)).status).toBe(404);
    const finish = '/api/run-bridge/v1/executions/finish';
    expect(await server.ask('POST', finish, passthrough, { run_key: 'night' })).toMatchObject({
      body: { kind: 'closing', run: { run_id: second } },
    });
    expect(await server.ask('POST', finish, own, { run_key: 'night' })).toMatchObject({
      body: { kind: 'closing', run: { run_id: first } },
    });
  });
});

describe('the permission sets', () => {
  it.each(Object.entries(RIGHTS))('have %s: %s', (right, sets) => {
    const having = Object.entries(PERMISSIONS).filter(([, rights]) => rights.some((one) => one === right));
    expect(having.map(([set]) => set).join(' ')).toBe(sets);
  });

  it('decide who may send telemetry', async () => {
    for (const set of PERMISSION_SETS) {
      const caller = { accountId: 10_001, tokenId: 1_001, permission: set };
      const gate = new TokenGate({ admit: async () => ({ kind: 'admitted', caller }) });
      const admission = gate.admit('Bearer x', '10.0.0.1');
      if (RIGHTS['telemetry:write'].split(' ').includes(set)) await admission;
      else await expect(admission, set).rejects.toMatchObject({ code: 'forbidden' });
    }
  });
});
