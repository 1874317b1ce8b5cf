import { Router } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunArtifacts } from '../../../src/api/artifact/run-artifacts.js';
import { uploadRouter } from '../../../src/api/own/upload-router.js';
import { PERMISSIONS, type Right } from '../../../src/api/permissions.js';
import { TokenGate } from '../../../src/api/token-gate.js';
import { artifactRouter } from '../../../src/api/v2/artifact-router.js';
import { apiRouters } from '../../../src/app/api-routers.js';
import { RecordLogFiles } from '../../../src/sink/record-log-files.js';
import { STEP_LIMITS } from '../../../src/source/artifact/artifact-limits.js';
import { FolderArtifactStore } from '../../../src/store/artifact/folder-artifact-store.js';
import { PERMISSION_SETS, type PermissionSet } from '../../../src/store/permission-set.js';
import { ApiServer } from '../../fake/api-server.js';
import { mountedRoutes } from '../../fake/mounted-routes.js';
import { NOTHING_RUN } from '../../fake/nothing-run.js';
import { webhookParts } from '../../fake/webhook-parts.js';

const ALL = PERMISSION_SETS;
const WORKERS = ['account_admin', 'admin', 'developer'] as const;
const HOOK_READERS = ['account_admin', 'admin', 'developer', 'webhooks_only', 'read_only'] as const;
const HOOK_WRITERS = ['account_admin', 'admin', 'developer', 'webhooks_only'] as const;
const READERS = ['account_admin', 'admin', 'developer', 'analyst', 'read_only'] as const;

/**
 * Who may use each endpoint of the API. A route that is mounted and has no row here fails; so does a row without a route.
 * Whoever adds an endpoint adds its row: the sets are written out, so that a change of the rights shows here.
 */
const TABLE: Readonly<Record<string, readonly PermissionSet[]>> = {
  'GET /api/v2/accounts': ALL,
  'GET /api/v2/accounts/:accountId': ALL,
  'GET /api/v2/accounts/:accountId/runs': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId': READERS,
  'GET /api/v2/accounts/:accountId/steps/:stepId': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId/artifacts': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId/artifacts/*path': READERS,
  'PUT /api/run-bridge/v1/runs/:runId/artifacts/*path': ['account_admin', 'admin', 'developer'],
  'GET /api/v2/accounts/:accountId/jobs': READERS,
  'GET /api/v2/accounts/:accountId/jobs/:jobId': READERS,
  'POST /api/v2/accounts/:accountId/jobs/:jobId/run': WORKERS,
  'POST /api/v2/accounts/:accountId/jobs/:jobId/rerun': WORKERS,
  'POST /api/v2/accounts/:accountId/runs/:runId/retry': WORKERS,
  'POST /api/v2/accounts/:accountId/runs/:runId/cancel': WORKERS,
  'GET /api/run-bridge/v1/runs/:id': READERS,
  'GET /api/run-bridge/v1/runs/:id/nodes': READERS,
  'GET /api/run-bridge/v1/runs/:id/measures': READERS,
  'GET /api/run-bridge/v1/runs/:id/records': READERS,
  'GET /api/run-bridge/v1/runs/:id/events': READERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscriptions': HOOK_READERS,
  'POST /api/v3/accounts/:accountId/webhooks/subscriptions': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_READERS,
  'PUT /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_WRITERS,
  'DELETE /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/test': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/events': HOOK_READERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/event/:eventId/receipt': HOOK_READERS,
  'GET /api/run-bridge/v1/webhooks': HOOK_READERS,
  'POST /api/run-bridge/v1/webhooks': HOOK_WRITERS,
  'POST /api/run-bridge/v1/webhooks/replay': HOOK_WRITERS,
  'GET /api/run-bridge/v1/webhooks/:webhookId': HOOK_READERS,
  'PATCH /api/run-bridge/v1/webhooks/:webhookId': HOOK_WRITERS,
  'DELETE /api/run-bridge/v1/webhooks/:webhookId': HOOK_WRITERS,
  'POST /api/run-bridge/v1/webhooks/:webhookId/secret': HOOK_WRITERS,
  'DELETE /api/run-bridge/v1/webhooks/:webhookId/old-secret': HOOK_WRITERS,
  'GET /api/run-bridge/v1/webhooks/:webhookId/preview': HOOK_READERS,
  'POST /api/run-bridge/v1/query': ['account_admin', 'admin', 'developer', 'analyst'],
};
/** What is for everybody, and stands before the tokens. */
const PUBLIC = ['/api/openapi.json'];
/** What docs/tokens.md says. */
const RIGHTS: Readonly<Record<Right, string>> = {
  'runs:read': 'account_admin admin developer analyst read_only',
  'artifacts:read': 'account_admin admin developer analyst read_only',
  'artifacts:write': 'account_admin admin developer sender',
  'jobs:read': 'account_admin admin developer analyst read_only',
  'jobs:run': 'account_admin admin developer',
  'runs:cancel': 'account_admin admin developer',
  query: 'account_admin admin developer analyst',
  'webhooks:read': 'account_admin admin developer webhooks_only read_only',
  'webhooks:write': 'account_admin admin developer webhooks_only',
  'tokens:manage': 'account_admin',
  'telemetry:write': 'account_admin admin developer sender',
};
const ENDPOINTS = Object.entries(TABLE).map(([name, sets]) => {
  const [method = '', path = ''] = name.split(' ');
  return { name, method, path, sets };
});

let routers: readonly Router[];
let server: ApiServer;
/** The same routers at an address that takes telemetry without a token. */
let open: ApiServer;
const secrets = new Map<PermissionSet, string>();
let bad: readonly (readonly [string, string])[];
beforeAll(async () => {
  const later = Router();
  server = await ApiServer.open(() => [later]);
  open = await ApiServer.open(() => [later], true);
  const { state, folder, clock } = server;
  const reader = new RecordLogFiles(folder, () => {});
  const webhooks = webhookParts(state, clock);
  const tracker = { find: async () => undefined };
  const own = { dataFolder: folder, tracker, stopping: new AbortController().signal, version: '0.0.0' };
  const openStore = async () => new FolderArtifactStore(folder);
  const artifacts = new RunArtifacts({ catalog: state.catalog, openStore, dataFolder: folder });
  const guard = { findShortage: () => undefined };
  const limits = { ...STEP_LIMITS, maxFileBytes: 1_000 };
  routers = [
    ...(await apiRouters({ state, reader, jobs: [], jobsLate: NOTHING_RUN, webhooks, clock, ...own })),
    artifactRouter({ artifacts, logger: server.logger }),
    uploadRouter(limits, { artifacts, openStore, guard, logger: server.logger }),
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

/** A path with ids that nothing has. */
function filled(path: string, accountId = 10_001): string {
  return path.replace(':accountId', String(accountId)).replaceAll(/[:*]\w+/g, '999999');
}

describe('the table of permission sets and endpoints', () => {
  it('has every endpoint that is mounted, and each has its guard', () => {
    const routes = mountedRoutes(routers).filter(({ path }) => !PUBLIC.includes(path));
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(TABLE).sort());
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
      const foreign = await server.token('account_admin', { accountId: 20_002 });
      const answers = [await server.ask(method, filled(path), foreign)];
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
