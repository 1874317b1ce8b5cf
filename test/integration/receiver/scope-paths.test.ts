import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashOf } from '../../../src/api/authenticator.js';
import type { ExportRequest, ResourceGroup } from '../../../src/otlp/export-request.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { openSqliteState } from '../../../src/storage/sqlite-state.js';
import { RawConnection, send } from '../../fake/http-client.js';
import { sampleBodies } from '../../fake/sample-run.js';
import { type ServedInProcess, serveInProcess } from '../../fake/serve-in-process.js';
import { bareRequest } from '../../tool/bare-bodies.js';
import { until } from '../../tool/until.js';

const codec = new ProtobufCodec();
const PROTOBUF = { 'content-type': 'application/x-protobuf' };
let folder: string;
let served: ServedInProcess;
/** The same program where telemetry needs a token. */
let guarded: ServedInProcess;
let traceCount = 0;
/** Tokens of the guarded one, by their permission; `other` is a developer's of another account. */
const tokens = new Map<string, string>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-paths-'));
  const config = join(folder, 'run-bridge.yaml');
  writeFileSync(config, 'jobs: { ruled: { match: { command: "*" }, environment: of the job, project: of the job } }\n');
  mkdirSync(join(folder, 'guarded'));
  const state = await openSqliteState(join(folder, 'guarded', 'state.db'));
  const other = await state.accounts.add({ name: 'other', id: 10_002 }, 1);
  for (const [name, permission, accountId] of [
    ['read_only', 'read_only', FIRST_ACCOUNT_ID],
    ['developer', 'developer', FIRST_ACCOUNT_ID],
    ['admin', 'account_admin', FIRST_ACCOUNT_ID],
    ['other', 'developer', other?.id ?? 0],
  ] as const) {
    const secret = `rbt_${name}`;
    tokens.set(name, secret);
    const hash = hashOf(secret).toString('hex');
    await state.tokens.add({
      name,
      userName: null,
      permission,
      createdUnixMs: 1,
      expiresUnixMs: null,
      accountId,
      hash,
    });
  }
  await state.close();
  served = await serveInProcess(['--config', config, '--data-dir', join(folder, 'open')], folder);
  guarded = await serveInProcess(['--otlp-auth', 'token', '--data-dir', join(folder, 'guarded')], folder);
});
afterAll(async () => {
  await served.stop();
  await guarded.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The bodies of a real run in a trace of its own, with bare resources and these attributes. */
function bodies(attributes: Readonly<Record<string, string>> = {}) {
  traceCount += 1;
  const traceId = String(traceCount).padStart(32, '7');
  const added = Object.entries(attributes).map(([key, value]) => ({ key, value }));
  const group = <T extends { readonly traceId: string }>({ resource, scopes, schemaUrl }: ResourceGroup<T>) => ({
    schemaUrl,
    resource: { ...resource, attributes: [...resource.attributes, ...added] },
    scopes: scopes.map((scope) => ({ ...scope, records: scope.records.map((record) => ({ ...record, traceId })) })),
  });
  const moved = (request: ExportRequest): ExportRequest =>
    request.signal === 'traces'
      ? { ...request, resources: request.resources.map(group) }
      : { ...request, resources: request.resources.map(group) };
  const list = sampleBodies('build-clean').map(({ signal, body }) => ({
    signal,
    body: codec.encode(moved(bareRequest(codec.decode(signal, body)))),
  }));
  return { traceId, list };
}

interface Sent {
  readonly path: string;
  /** Where logs go to, where that is another path. */
  readonly logsPath?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly to?: ServedInProcess;
}

async function sendRun(
  { path, logsPath = path, attributes = {}, headers = {}, to = served }: Sent,
  run = bodies(attributes),
) {
  for (const { signal, body } of run.list) {
    const url = `${to.otlpUrl}${signal === 'logs' ? logsPath : path}/v1/${signal}`;
    const answer = await fetch(url, { method: 'POST', headers: { ...PROTOBUF, ...headers }, body });
    expect(answer.status, url).toBe(200);
  }
  return run;
}

/** What the API says that a run belongs to, once it is over. */
async function scopeOf(traceId: string, token = adminToken('open'), to = served) {
  const headers = { authorization: `Token ${token}` };
  const { job, environment, project } = await until(`the end of ${traceId}`, async () => {
    const answer = await fetch(`${to.webUrl}/api/run-bridge/v1/runs/${traceId}`, { headers });
    const { data } = JSON.parse(await answer.text());
    return data?.is_complete === true && data;
  });
  return [job.name, environment.name, project.name];
}

function adminToken(data: string): string {
  return readFileSync(join(folder, data, 'admin-token'), 'utf8').trim();
}

describe('the path of an endpoint', () => {
  test.each([
    ['/job/nightly/environment/prod/project/shop', ['nightly', 'prod', 'shop']],
    ['/project/shop/environment/prod/job/nightly', ['nightly', 'prod', 'shop']],
    ['/environment/staging', ['ruled', 'staging', 'of the job']],
    ['/job/b%C3%BCro%20%F0%9F%8C%99', ['büro 🌙', 'default', 'default']],
    ['/job/team%2Fnightly%2525', ['team/nightly%25', 'default', 'default']],
    ['/job/%20padded%20', ['padded', 'default', 'default']],
    [`/job/${encodeURIComponent('ü'.repeat(200))}`, ['ü'.repeat(200), 'default', 'default']],
    ['/job/job', ['job', 'default', 'default']],
    ['/job/..%2F..', ['../..', 'default', 'default']],
    ['', ['ruled', 'of the job', 'of the job']],
  ])('%s says what a run belongs to', async (path, expected) => {
    const { traceId } = await sendRun({ path });
    expect(await scopeOf(traceId)).toEqual(expected);
  });

  test('comes before resource attributes, and each name that it leaves out is theirs, or that of a rule', async () => {
    const attributes = { 'run_bridge.job': 'of the resource', 'run_bridge.environment': 'of the resource' };
    const { traceId } = await sendRun({ path: '/job/of%20the%20path', attributes });
    expect(await scopeOf(traceId)).toEqual(['of the path', 'of the resource', 'default']);
    const without = await sendRun({ path: '', attributes });
    expect(await scopeOf(without.traceId)).toEqual(['of the resource', 'of the resource', 'default']);
  });

  test('may be that of spans alone, in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', async () => {
    const { traceId } = await sendRun({ path: '/job/of%20traces', logsPath: '' });
    expect(await scopeOf(traceId)).toEqual(['of traces', 'default', 'default']);
    const run = JSON.parse(readFileSync(join(folder, 'open', 'runs', traceId, 'run.json'), 'utf8'));
    expect(run.steps[0].resource.attributes).toMatchObject({ 'run_bridge.job': 'of traces' });
  });

  test('changes no record: what comes again below another one is not written again, and the first one stays', async () => {
    const run = await sendRun({ path: '/job/first' });
    expect(await scopeOf(run.traceId)).toEqual(['first', 'default', 'default']);
    const file = (name: string) => readFileSync(join(folder, 'open', 'runs', run.traceId, name), 'utf8');
    const [log, resources] = [file('telemetry.jsonl'), file('resources.jsonl')];
    await sendRun({ path: '/job/second/project/other' }, run);
    await sendRun({ path: '' }, run);
    expect([file('telemetry.jsonl') === log, file('resources.jsonl')]).toEqual([true, resources]);
    expect(resources.match(/"run_bridge.job":"[^"]*"/g)).toEqual(['"run_bridge.job":"first"']);
    expect(log).not.toContain('first');
    expect(await scopeOf(run.traceId)).toEqual(['first', 'default', 'default']);
  });

  test('is the same in JSON and compressed', async () => {
    const body = JSON.stringify({ resourceLogs: [] });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${served.otlpUrl}/project/shop/v1/logs/`, { method: 'POST', headers, body });
    expect([answer.status, await answer.text()]).toEqual([200, '{}']);
  });
});

describe('a path that cannot be one', () => {
  const [HELP, ENCODE] = [/http:\/\/HOST:4318\/job\/nightly\/environment\/prod/, /%20.*%25/];
  test.each([
    ['/nightly/v1/traces', 404, [/Part 1 .* neither job, environment nor project/, HELP]],
    ['/jobs/nightly/v1/traces', 404, [/Part 1 /, HELP]],
    ['/JOB/nightly/v1/traces', 404, [/Part 1 /, HELP]],
    ['/job%2Fnightly/v1/traces', 404, [/Part 1 /, HELP]],
    ['/job/nightly/team/a/v1/traces', 404, [/Part 3 /, HELP]],
    ['/job/nightly/account/10002/v1/traces', 404, [/Part 3 /, HELP]],
    ['/v1/traces/v1/traces', 404, [/Part 1 /, /senders append \/v1\/traces/]],
    ['/job/a/job/b/v1/traces', 400, [/job twice/, HELP]],
    ['/job/a/environment/e/job/a/v1/logs', 400, [/job twice/, HELP]],
    ['/job/v1/traces', 400, [/no name after job/, HELP]],
    ['/job//v1/traces', 400, [/no name after job/, /slash too many/]],
    ['/job/a//v1/traces', 404, [/Part 3 /, HELP]],
    ['/job/%20%20/v1/traces', 400, [/1 to 200 characters/, HELP]],
    ['/job/a%00b/v1/traces', 400, [/control characters/, HELP]],
    ['/job/a%0Ab/v1/traces', 400, [/control characters/, HELP]],
    ['/job/a%E2%80%A8b/v1/traces', 400, [/one line/, HELP]],
    [`/job/${'x'.repeat(201)}/v1/traces`, 400, [/1 to 200 characters/, HELP]],
    ['/job/100%/v1/traces', 400, [ENCODE]],
    ['/job/%zz/v1/traces', 400, [ENCODE]],
    ['/job/%C3/v1/traces', 400, [ENCODE]],
    ['/job/%ED%A0%80/v1/traces', 400, [ENCODE]],
    ['/job/%C0%AF/v1/traces', 400, [ENCODE]],
    ['/job/a/v1/metrics', 404, [/metrics/i]],
    ['/job/a', 404, [/also below \/job\/NAME/]],
  ])('%s is %i, and says what to do', async (path, status, messages) => {
    const answer = await send(Number(new URL(served.otlpUrl).port), {
      path,
      headers: { 'Content-Type': 'application/json' },
    });
    const { message } = JSON.parse(answer.body.toString());
    expect([answer.status, message.length < 600]).toEqual([status, true]);
    for (const one of messages) expect(message).toMatch(one);
  });

  test.each(['/job/n\xC3\xA4chtlich', '/job/a\tb', '/job/a\x7Fb'])('%j, sent as it is, is 400', async (path) => {
    const raw = await RawConnection.open(Number(new URL(served.otlpUrl).port));
    raw.write(
      Buffer.from(
        `POST ${path}/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        'latin1',
      ),
    );
    expect(await raw.untilClosed()).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('is 405 for another method than POST', async () => {
    const answer = await fetch(`${served.otlpUrl}/job/nightly/v1/traces`);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('where telemetry needs a token', () => {
  const authorization = (token: string) => ({ authorization: `Bearer ${token}` });
  const status = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const url = `${guarded.otlpUrl}${path}/v1/traces`;
    return (await fetch(url, { method: 'POST', headers: { ...PROTOBUF, ...headers } })).status;
  };

  test('a path gives no access, and nobody without a token learns whether it can be one', async () => {
    for (const path of ['', '/job/nightly', '/nonsense', '/job/a/job/a']) {
      expect(await status(path), path).toBe(401);
      expect(await status(path, authorization('rbt_wrong')), path).toBe(401);
      expect(await status(path, authorization(tokens.get('read_only') ?? '')), path).toBe(403);
    }
    expect(await status('/job/nightly', authorization(tokens.get('developer') ?? ''))).toBe(200);
  });

  test("is of the token's account, whatever the path names", async () => {
    const other = tokens.get('other') ?? '';
    const headers = authorization(other);
    const { traceId } = await sendRun({ path: '/job/nightly/project/shop', headers, to: guarded });
    expect(await scopeOf(traceId, other, guarded)).toEqual(['nightly', 'default', 'shop']);
    const url = `${guarded.webUrl}/api/run-bridge/v1/runs/${traceId}`;
    const asked = await fetch(url, { headers: authorization(tokens.get('developer') ?? '') });
    expect(asked.status).toBe(404);
  });
});
