import { PERMISSION_SETS, type PermissionSet } from '../../src/storage/state-tables.js';

const ALL = PERMISSION_SETS;
const WORKERS = ['account_admin', 'admin', 'developer'] as const;
const ADMINS = ['account_admin', 'admin'] as const;
const HOOK_READERS = ['account_admin', 'admin', 'developer', 'webhooks_only', 'read_only'] as const;
const HOOK_WRITERS = ['account_admin', 'admin', 'developer', 'webhooks_only'] as const;
const ANALYSTS = ['account_admin', 'admin', 'developer', 'analyst'] as const;
const READERS = ['account_admin', 'admin', 'developer', 'analyst', 'read_only'] as const;

/**
 * Who may use each endpoint of the API. A route that is mounted and has no row here fails; so does a row without a route.
 * Whoever adds an endpoint adds its row: the sets are written out, so that a change of the rights shows here.
 */
export const ENDPOINT_TABLE: Readonly<Record<string, readonly PermissionSet[]>> = {
  'GET /api/v2/accounts': ALL,
  'GET /api/v2/accounts/:accountId': ALL,
  'GET /api/v2/accounts/:accountId/runs': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId': READERS,
  'GET /api/v2/accounts/:accountId/steps/:stepId': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId/artifacts': READERS,
  'GET /api/v2/accounts/:accountId/runs/:runId/artifacts/*path': READERS,
  'PUT /api/run-bridge/v1/runs/:runId/artifacts/*path': ['account_admin', 'admin', 'developer'],
  'GET /api/run-bridge/v1/artifacts/*path': READERS,
  'GET /api/v2/accounts/:accountId/jobs': READERS,
  'GET /api/v2/accounts/:accountId/jobs/:jobId': READERS,
  'GET /api/v2/accounts/:accountId/jobs/:jobId/artifacts/*path': READERS,
  'GET /api/v2/accounts/:accountId/notifications': READERS,
  'GET /api/v3/accounts/:accountId/projects/:projectId/environment-variables/job': READERS,
  'GET /api/v2/accounts/:accountId/projects': READERS,
  'GET /api/v2/accounts/:accountId/projects/:projectId': READERS,
  'GET /api/v2/accounts/:accountId/projects/:projectId/environments': READERS,
  'GET /api/v2/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'GET /api/v2/accounts/:accountId/environments': READERS,
  'GET /api/v2/accounts/:accountId/environments/:environmentId': READERS,
  'GET /api/v3/accounts/:accountId/projects': READERS,
  'GET /api/v3/accounts/:accountId/projects/:projectId': READERS,
  'GET /api/v3/accounts/:accountId/projects/:projectId/environments': READERS,
  'GET /api/v3/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'GET /api/v3/accounts/:accountId/environments': READERS,
  'GET /api/v3/accounts/:accountId/environments/:environmentId': READERS,
  'POST /api/v2/accounts/:accountId/jobs': READERS,
  'POST /api/v2/accounts/:accountId/jobs/:jobId': READERS,
  'DELETE /api/v2/accounts/:accountId/jobs/:jobId': READERS,
  'POST /api/v2/accounts/:accountId/projects': READERS,
  'POST /api/v2/accounts/:accountId/projects/:projectId': READERS,
  'DELETE /api/v2/accounts/:accountId/projects/:projectId': READERS,
  'POST /api/v2/accounts/:accountId/projects/:projectId/environments': READERS,
  'POST /api/v2/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'DELETE /api/v2/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'POST /api/v2/accounts/:accountId/environments': READERS,
  'POST /api/v2/accounts/:accountId/environments/:environmentId': READERS,
  'DELETE /api/v2/accounts/:accountId/environments/:environmentId': READERS,
  'POST /api/v3/accounts/:accountId/projects': READERS,
  'POST /api/v3/accounts/:accountId/projects/:projectId': READERS,
  'DELETE /api/v3/accounts/:accountId/projects/:projectId': READERS,
  'POST /api/v3/accounts/:accountId/projects/:projectId/environments': READERS,
  'POST /api/v3/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'DELETE /api/v3/accounts/:accountId/projects/:projectId/environments/:environmentId': READERS,
  'POST /api/v3/accounts/:accountId/environments': READERS,
  'POST /api/v3/accounts/:accountId/environments/:environmentId': READERS,
  'DELETE /api/v3/accounts/:accountId/environments/:environmentId': READERS,
  'POST /api/v2/accounts/:accountId/jobs/:jobId/run': WORKERS,
  'POST /api/v2/accounts/:accountId/jobs/:jobId/rerun': WORKERS,
  'GET /api/v2/accounts/:accountId/runs/:runId/retry': READERS,
  'POST /api/v2/accounts/:accountId/runs/:runId/retry': WORKERS,
  'POST /api/v2/accounts/:accountId/runs/:runId/cancel': WORKERS,
  'GET /api/run-bridge/v1/runs/:id': READERS,
  'DELETE /api/run-bridge/v1/runs/:id': ADMINS,
  'POST /api/run-bridge/v1/runs/:id/export': WORKERS,
  'GET /api/run-bridge/v1/runs/:id/nodes': READERS,
  'GET /api/run-bridge/v1/runs/:id/measures': READERS,
  'GET /api/run-bridge/v1/runs/:id/records': READERS,
  'GET /api/run-bridge/v1/runs/:id/events': READERS,
  'GET /api/run-bridge/v1/set-aside-runs': READERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscriptions': HOOK_READERS,
  'POST /api/v3/accounts/:accountId/webhooks/subscriptions': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_READERS,
  'PUT /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_WRITERS,
  'DELETE /api/v3/accounts/:accountId/webhooks/subscription/:webhookId': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/test': HOOK_WRITERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/events': HOOK_READERS,
  'GET /api/v3/accounts/:accountId/webhooks/subscription/:webhookId/event/:eventId/receipt': HOOK_READERS,
  'GET /api/v3/accounts/:accountId/webhooks/event/:eventId': HOOK_READERS,
  'GET /api/v3/accounts/:accountId/webhooks/event/:eventId/receipts': HOOK_READERS,
  'GET /api/v3/accounts/:accountId/webhooks/receipt/:receiptId': HOOK_READERS,
  'GET /api/run-bridge/v1/webhooks': HOOK_READERS,
  'POST /api/run-bridge/v1/webhooks': HOOK_WRITERS,
  'POST /api/run-bridge/v1/webhooks/replay': HOOK_WRITERS,
  'GET /api/run-bridge/v1/webhooks/:webhookId': HOOK_READERS,
  'PATCH /api/run-bridge/v1/webhooks/:webhookId': HOOK_WRITERS,
  'DELETE /api/run-bridge/v1/webhooks/:webhookId': HOOK_WRITERS,
  'POST /api/run-bridge/v1/webhooks/:webhookId/secret': HOOK_WRITERS,
  'DELETE /api/run-bridge/v1/webhooks/:webhookId/old-secret': HOOK_WRITERS,
  'GET /api/run-bridge/v1/webhooks/:webhookId/preview': HOOK_READERS,
  'POST /api/run-bridge/v1/query': ANALYSTS,
  'GET /metrics': READERS,
};

/** Who may tell of commands that run elsewhere: who may send telemetry. Answered at the port of telemetry, too. */
export const SENDER_TABLE: Readonly<Record<string, readonly PermissionSet[]>> = {
  'PUT /api/run-bridge/v1/executions/steps/:stepId': WORKERS,
  'PUT /api/run-bridge/v1/executions/steps/:stepId/traces/:traceId': WORKERS,
  'PUT /api/run-bridge/v1/executions/steps/:stepId/artifacts': WORKERS,
  'PUT /api/run-bridge/v1/executions/steps/:stepId/artifacts/end': WORKERS,
  'PUT /api/run-bridge/v1/executions/steps/:stepId/end': WORKERS,
  'GET /api/run-bridge/v1/executions/steps/:stepId/cancellation': WORKERS,
  'POST /api/run-bridge/v1/executions/finish': WORKERS,
};

/** Who may look at each page. What is asked without a token is answered with the page that takes one. */
export const PAGE_TABLE: Readonly<Record<string, readonly PermissionSet[]>> = {
  'GET /': READERS,
  'GET /events': READERS,
  'GET /runs/by-trace/:traceId': READERS,
  'GET /runs/:runId': READERS,
  'GET /runs/:runId/nodes': READERS,
  'GET /runs/:runId/timeline': READERS,
  'GET /runs/:runId/timeline.json': READERS,
  'GET /runs/:runId/compare': READERS,
  'GET /runs/:runId/graph': READERS,
  'GET /runs/:runId/deliveries': ['account_admin', 'admin', 'developer', 'read_only'],
  'GET /runs/:runId/logs': READERS,
  'GET /runs/:runId/logs.txt': READERS,
  'GET /runs/:runId/artifacts': READERS,
  'GET /runs/:runId/artifacts/*path': READERS,
  'GET /runs/:runId/artifacts.zip': READERS,
  'GET /deploy/:accountId/projects/:projectId/runs/:runId': READERS,
  'GET /jobs': READERS,
  'GET /jobs/:jobId': READERS,
  'POST /jobs/:jobId/run': WORKERS,
  'POST /runs/:runId/export': WORKERS,
  'POST /runs/:runId/retry': WORKERS,
  'POST /runs/:runId/cancel': WORKERS,
  'GET /runs/:runId/delete': ADMINS,
  'POST /runs/:runId/delete': ADMINS,
  'GET /query': ANALYSTS,
  'GET /query.csv': ANALYSTS,
  'GET /query.parquet': ANALYSTS,
  'GET /models': READERS,
  'GET /settings': ['account_admin'],
  'POST /settings/test': ['account_admin'],
  'GET /webhooks': HOOK_READERS,
  'POST /webhooks/dismiss': HOOK_READERS,
  'GET /webhooks/new': HOOK_WRITERS,
  'POST /webhooks/new': HOOK_WRITERS,
  'GET /webhooks/:webhookId': HOOK_READERS,
  'GET /webhooks/:webhookId/events/:eventId': HOOK_READERS,
  'GET /webhooks/:webhookId/change': HOOK_WRITERS,
  'POST /webhooks/:webhookId/change': HOOK_WRITERS,
  'GET /webhooks/:webhookId/delete': HOOK_WRITERS,
  'POST /webhooks/:webhookId/delete': HOOK_WRITERS,
  'POST /webhooks/:webhookId/pause': HOOK_WRITERS,
  'POST /webhooks/:webhookId/secret': HOOK_WRITERS,
  'POST /webhooks/:webhookId/reactivate': HOOK_WRITERS,
  'POST /webhooks/:webhookId/replay': HOOK_WRITERS,
  'POST /webhooks/:webhookId/test': HOOK_WRITERS,
};

/** What pages are shown with, and where somebody signs in: needs no token. */
export const SIGN_IN_ENDPOINTS: readonly string[] = [
  'GET /sign-in',
  'POST /sign-in',
  'POST /sign-out',
  'GET /arrive',
  'GET /pages/style.css',
  'GET /pages/page.js',
  'GET /pages/timeline.js',
  'GET /pages/icon.svg',
];

/** What needs no token anywhere; the last one checks signatures, and takes POST alone. */
export const PUBLIC_ENDPOINTS: readonly string[] = [
  'GET /api/openapi.json',
  'GET /api/run-bridge/v1',
  'GET /healthz',
  'GET /readyz',
  'GET /',
  'ALL /hooks/platform',
];

/** Telemetry itself, also below a path that names job, environment and project; other methods are answered so. */
export const TELEMETRY_ENDPOINTS: readonly string[] = [
  'POST /v1/traces',
  'POST /v1/logs',
  'POST /*scope/v1/traces',
  'POST /*scope/v1/logs',
];

/** An endpoint as tests ask it. */
export interface Endpoint {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly sets: readonly PermissionSet[];
}

/** The endpoints of a table. */
export function endpointsOf(table: Readonly<Record<string, readonly PermissionSet[]>>): readonly Endpoint[] {
  return Object.entries(table).map(([name, sets]) => {
    const [method = '', path = ''] = name.split(' ');
    return { name, method, path, sets };
  });
}
