import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Router } from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { circuitBreaker, DEFAULT_BREAKER_LIMITS } from '../../../src/webhook/circuit-breaker.js';
import { webhookRouters } from '../../../src/webhook/routes.js';
import { SecretBox } from '../../../src/webhook/secrets.js';
import { FRESH_STANDING } from '../../../src/webhook/subscription.js';
import { ApiServer } from '../../fake/api-server.js';
import { attempted, commandNote, eventsOf } from '../../fake/webhook-facts.js';
import { webhookParts } from '../../fake/webhook-parts.js';

const ALL = '/api/v3/accounts/10001/webhooks/subscriptions';
const ONE = '/api/v3/accounts/10001/webhooks/subscription';
const HOOKS = '/api/v3/accounts/10001/webhooks';
const OWN = '/api/run-bridge/v1/webhooks';
const INPUT = { name: 'n', client_url: 'https://hooks.example.com/', event_types: ['job.run.started'] };
const madeSchema = z.object({ data: z.looseObject({ id: z.string(), hmac_secret: z.string() }) });

let server: ApiServer;
let token: string;
let parts: ReturnType<typeof webhookParts>;
beforeEach(async () => {
  const later = Router();
  server = await ApiServer.open(() => [later]);
  const { state, clock } = server;
  parts = webhookParts(state, clock);
  later.use(...webhookRouters(parts.routing));
  token = await server.token();
});
afterEach(() => server.close());

const ask = (method: string, path: string, body?: unknown) => server.ask(method, path, token, body);
async function make(given: object = {}) {
  const { body } = await ask('POST', ALL, { ...INPUT, ...given });
  return madeSchema.parse(body).data;
}
const archive = (id: string) =>
  server.state.subscriptions.change(
    FIRST_ACCOUNT_ID,
    id,
    () => ({ state: 'archived', archiveReason: '1000 deliveries in a row have failed' }),
    1,
  );

describe('webhook subscriptions over the platform API', () => {
  it('are made with 201 and their secret, which is shown this once', async () => {
    const { status, body } = await ask('POST', `${ALL}/`, { ...INPUT, id: '', description: null, job_ids: null });
    expect(status).toBe(201);
    const { id, hmac_secret, ...shown } = madeSchema.parse(body).data;
    expect(body).toMatchObject({ status: { code: 201, is_success: true } });
    expect([id, hmac_secret]).toEqual([
      expect.stringMatching(/^wsu_[0-9A-Za-z]{27}$/),
      expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
    ]);
    expect(shown).toEqual({
      ...{ account_identifier: '10001', account_id: '10001', name: 'n', description: '', job_ids: [] },
      ...{ event_types: ['job.run.started'], client_url: 'https://hooks.example.com/', active: true },
      ...{
        archived_reason: null,
        deactivate_reason: null,
        created_at: '1767225600000000',
        updated_at: '1767225600000000',
      },
      ...{ http_status_code: '0', last_error: null },
    });
    for (const path of [ALL, `${ONE}/${id}`, `${ONE}/${id}/`]) {
      const answer = await ask('GET', path);
      expect([answer.status, JSON.stringify(answer.body).includes('hmac_secret')]).toEqual([200, false]);
    }
    expect(JSON.stringify(await server.state.subscriptions.find(FIRST_ACCOUNT_ID, id))).not.toContain(hmac_secret);
  });

  it('are listed 10 at a time from the first, or as is asked', async () => {
    for (let at = 0; at < 12; at += 1) await make({ name: `n${at}` });
    const { body } = await ask('GET', ALL);
    expect(body).toMatchObject({
      status: { code: 200 },
      extra: { pagination: { total_count: 12, count: 10 }, filters: { limit: 10, offset: 0 } },
    });
    expect((await ask('GET', `${ALL}/?limit=5&offset=10`)).body).toMatchObject({
      extra: { pagination: { total_count: 12, count: 2 }, filters: { limit: 5, offset: 10 } },
    });
    expect((await ask('GET', `${ALL}?limit=x`)).status).toBe(400);
  });

  it.each([
    [{ name: '' }, 'name'],
    [{ name: undefined }, 'name: is missing'],
    [{ name: 7 }, 'name: must be a string.'],
    [{ name: null }, 'name: must be a string.'],
    [{ client_url: undefined }, 'client_url: is missing'],
    [{ client_url: 'ftp://x/' }, 'client_url'],
    [{ client_url: 'nowhere' }, 'client_url'],
    [{ client_url: 'mailto:a@example.com' }, 'client_url'],
    [{ client_url: 'https://u:p@example.com/' }, 'client_url'],
    [{ event_types: [] }, 'event_types'],
    [{ event_types: undefined }, 'event_types: is missing'],
    [{ event_types: ['job.run.paused'] }, 'event_types.0: is none of job.run.started'],
    [{ event_types: 'job.run.started' }, 'event_types'],
    [{ active: 'yes' }, 'active'],
    [{ description: 7 }, 'description'],
    [{ job_ids: [999] }, 'job_ids: there is no job 999'],
    [{ job_ids: ['x'] }, 'job_ids'],
    [{ job_ids: [1.5] }, 'job_ids'],
  ])('are refused with 400 and the name of the field: %j', async (given, message) => {
    const { status, body } = await ask('POST', ALL, { ...INPUT, ...given });
    expect([status, body]).toEqual([400, expect.objectContaining({ data: null })]);
    expect(body).toMatchObject({ status: { code: 400, user_message: expect.stringContaining(message) } });
  });

  it.each([[[1]], ['x'], [7]])('are refused where the body is %j, which is no object', async (given) => {
    for (const path of [ALL, OWN]) {
      const { status, body } = await ask('POST', path, given);
      expect(status).toBe(400);
      expect(body).toMatchObject({ status: { user_message: 'The body is no JSON object; send one.' } });
    }
  });

  it('take numbers of jobs in every form that clients send', async () => {
    await server.state.invocations.note([commandNote(1)], 1_000);
    const { items } = await server.state.catalog.listJobs(FIRST_ACCOUNT_ID, {
      ...{ orderBy: 'id', isDescending: false, limit: 1, offset: 0 },
    });
    const id = items[0]?.id ?? 0;
    for (const job_ids of [[id], [String(id)], id, String(id), [id, id]]) {
      expect(await make({ job_ids })).toMatchObject({ job_ids: [String(id)] });
    }
  });

  it('are changed in part', async () => {
    const { id } = await make({ description: 'd', event_types: ['job.run.errored', 'job.run.started'] });
    server.clock.advance(1_000);
    const { status, body } = await ask('PUT', `${ONE}/${id}/`, { name: 'other' });
    expect([status, body]).toMatchObject([
      200,
      { data: { name: 'other', description: 'd', event_types: ['job.run.errored', 'job.run.started'] } },
    ]);
    expect(body).toMatchObject({ data: { updated_at: '1767225601000000', created_at: '1767225600000000' } });
    const refused = await ask('PUT', `${ONE}/${id}`, { client_url: '' });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ status: { user_message: expect.stringContaining('client_url') } });
    expect((await ask('PUT', `${ONE}/wsu_x`, { name: 'other' })).status).toBe(404);
  });

  it.each([
    ['active', { active: false }, 'inactive'],
    ['active', { client_url: 'https://new.example.com/' }, 'active'],
    ['active', { active: false, client_url: 'https://new.example.com/' }, 'inactive'],
    ['inactive', { active: true }, 'active'],
    ['inactive', { client_url: 'https://new.example.com/' }, 'inactive'],
    ['inactive', { active: true, client_url: 'https://new.example.com/' }, 'active'],
    ['inactive', { active: false, client_url: 'https://new.example.com/' }, 'inactive'],
    ['inactive', { client_url: INPUT.client_url }, 'inactive'],
    ['inactive', { name: 'x' }, 'inactive'],
    ['archived', { active: true }, 'active'],
    ['archived', { client_url: 'https://new.example.com/' }, 'active'],
    ['archived', { active: false, client_url: 'https://new.example.com/' }, 'active'],
    ['archived', { client_url: INPUT.client_url }, 'archived'],
    ['archived', { active: false }, 'archived'],
    ['archived', { name: 'x' }, 'archived'],
  ] as const)('that are %s become, by %j, %s', async (before, change, expected) => {
    const { id } = await make({ active: before !== 'inactive' });
    if (before === 'archived') await archive(id);
    const { body } = await ask('PUT', `${ONE}/${id}`, change);
    expect(body).toMatchObject({ data: { active: expected === 'active' } });
    const kept = await server.state.subscriptions.find(FIRST_ACCOUNT_ID, id);
    expect(kept?.state).toBe(expected);
    if (expected === 'active') expect(kept).toMatchObject({ archiveReason: null, failedCount: 0 });
  });

  it('that were archived say that they are not active, and why', async () => {
    const { id } = await make();
    await archive(id);
    expect((await ask('GET', `${ONE}/${id}`)).body).toMatchObject({
      data: {
        active: false,
        archived_reason: '1000 deliveries in a row have failed',
        deactivate_reason: '1000 deliveries in a row have failed',
      },
    });
  });

  it('are removed, and are then not there', async () => {
    const { id } = await make();
    const { status, body } = await ask('DELETE', `${ONE}/${id}`);
    expect([status, body]).toMatchObject([200, { data: { id }, status: { code: 200, is_success: true } }]);
    const gone = await ask('GET', `${ONE}/${id}`);
    expect([gone.status, gone.body]).toMatchObject([404, { status: { code: 404 }, data: null }]);
  });

  it('have a log of events and receipts, which are there by their own ids as well', async () => {
    const { id } = await make();
    await server.state.invocations.note([commandNote(1)], 4_000);
    const [event] = await eventsOf(server.state, id);
    if (event === undefined) throw new Error('there is no event');
    const path = `${ONE}/${id}/event/${event.id}/receipt`;
    expect((await ask('GET', path)).body).toMatchObject({ data: [] });
    const keep = () => ({ standing: { ...FRESH_STANDING, dispatchedUnixMs: 5 }, archiveReason: null });
    await server.state.webhookEvents.finish([attempted(event)], 'p', keep);
    const { body } = await ask('GET', `${ONE}/${id}/events/`);
    const listed = z.object({ data: z.array(z.record(z.string(), z.string())) }).parse(body).data;
    expect(listed).toMatchObject([
      { id: event.id, subscription_id: id, trigger_event_type: 'job.run.started', account_id: '10001' },
    ]);
    expect(JSON.parse(listed[0]?.payload ?? '')).toMatchObject({ eventId: event.id, webhookId: id });
    const { body: receipts } = await ask('GET', path);
    expect(receipts).toMatchObject({
      data: [
        {
          ...{ id: `${event.id}.1`, event_id: event.id, subscription_id: id, http_status_code: '200' },
          ...{ error_info: null, request_body: '{"a":1}', response_body: 'ok' },
        },
      ],
    });
    const [receipt] = z.object({ data: z.array(z.unknown()) }).parse(receipts).data;
    expect((await ask('GET', `${HOOKS}/event/${event.id}/`)).body).toMatchObject({ data: listed[0] });
    expect((await ask('GET', `${HOOKS}/event/${event.id}/receipts`)).body).toEqual(receipts);
    expect((await ask('GET', `${HOOKS}/receipt/${event.id}.1`)).body).toMatchObject({ data: receipt });
    for (const unknown of ['event/wev_x', 'event/wev_x/receipts', 'receipt/wev_x.1', `receipt/${event.id}.2`]) {
      expect((await ask('GET', `${HOOKS}/${unknown}`)).status, unknown).toBe(404);
    }
    const other = await server.token('account_admin', { accountId: 20_002 });
    const stolen = `/api/v3/accounts/20002/webhooks/event/${event.id}`;
    for (const at of [stolen, `${stolen}/receipts`, `/api/v3/accounts/20002/webhooks/receipt/${event.id}.1`]) {
      expect((await server.ask('GET', at, other)).status, at).toBe(404);
    }
    expect((await ask('GET', `${ONE}/${id}`)).body).toMatchObject({ data: { dispatched_at: '5000' } });
  });
});

describe('the HTTP status of a subscription', () => {
  it('is 0 only while nothing was ever sent; an attempt without one keeps the last, and words stand beside it', async () => {
    const { id } = await make();
    await server.state.invocations.note([commandNote(1)], 4_000);
    const [event] = await eventsOf(server.state, id);
    if (event === undefined) throw new Error('there is no event');
    const rule = circuitBreaker(DEFAULT_BREAKER_LIMITS);
    const shown = async () => {
      const schema = z.object({
        data: z.looseObject({ http_status_code: z.string(), last_error: z.string().nullable() }),
      });
      const [v3, own] = [await ask('GET', `${ONE}/${id}`), await ask('GET', `${OWN}/${id}`)];
      const { http_status_code: status, last_error: error } = schema.parse(v3.body).data;
      expect(own.body).toMatchObject({ data: { http_status_code: status, last_error: error } });
      const { body } = await ask('GET', `${ONE}/${id}/events`);
      const [listed] = z.object({ data: z.array(z.object({ http_status_code: z.string() })) }).parse(body).data;
      return [status, error, listed?.http_status_code];
    };
    expect(await shown()).toEqual(['0', null, '0']);
    const { attempt } = attempted(event);
    for (const [httpStatusCode, error, expected] of [
      [null, 'connect ECONNREFUSED', ['', 'connect ECONNREFUSED', '']],
      [503, 'the endpoint answered 503', ['503', 'the endpoint answered 503', '503']],
      [null, 'no answer within 10 s', ['503', 'no answer within 10 s', '503']],
      [204, null, ['204', null, '204']],
    ] as const) {
      const subscription = { id, maxPerMinute: null };
      const farUnixMs = Date.UTC(2100, 0, 1);
      const claim = { holder: 'p1', nowUnixMs: farUnixMs, leaseUntilUnixMs: farUnixMs };
      const [claimed] = await server.state.webhookEvents.claim(subscription, 1, claim);
      if (claimed === undefined) throw new Error('nothing is due');
      const next = error === null ? ({ state: 'delivered' } as const) : ({ state: 'pending', dueUnixMs: 0 } as const);
      const result = {
        event: claimed,
        urlVersion: 1,
        attempt: { ...attempt, httpStatusCode, error },
        next,
        isGone: false,
      };
      await server.state.webhookEvents.finish([result], 'p1', rule);
      expect(await shown()).toEqual(expected);
    }
    const receipt = await ask('GET', `${ONE}/${id}/event/${event.id}/receipt`);
    expect(receipt.body).toMatchObject({
      data: [{ http_status_code: '', error_info: 'connect ECONNREFUSED' }, {}, {}, {}],
    });
  });
});

describe('a test of a subscription', () => {
  let endpoint: Server;
  let status = 200;
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const url = () => `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`;
  beforeEach(async () => {
    bodies.length = 0;
    headers.length = 0;
    endpoint = createServer((request, response) => {
      headers.push(request.headers);
      request.on('data', (chunk) => bodies.push(String(chunk)));
      request.on('end', () => response.writeHead(status).end());
    });
    await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => new Promise((resolve) => endpoint.close(resolve)));

  it('sends a sample now, and says what was answered', async () => {
    const { id } = await make({ client_url: url() });
    for (const [answered, error] of [
      [200, null],
      [500, 'the endpoint answered 500'],
    ] as const) {
      status = answered;
      const { body } = await ask('GET', `${ONE}/${id}/test`);
      expect(body).toMatchObject({
        status: { code: 200 },
        data: {
          verification_error: error,
          verification_status_code: String(answered),
          event_id: expect.stringMatching(/^wev_/),
        },
      });
    }
    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ eventType: 'job.run.started', webhookId: id });
  });

  it.each(['http', 'slack', 'teams'] as const)(
    '(%s) is marked as one, of no run that there is, and of no failure',
    async (type) => {
      status = 200;
      await server.state.invocations.note([commandNote(1, { verdict: 'error', statusMessage: 'Boom' })], 4_000);
      const given = { ...INPUT, type, client_url: url(), event_types: ['job.run.errored'], name: 'pager' };
      const { id } = madeSchema.parse((await ask('POST', OWN, given)).body).data;
      expect((await ask('GET', `${ONE}/${id}/test`)).body).toMatchObject({ data: { verification_error: null } });
      expect(headers[0]).toMatchObject({ 'webhook-test': 'true' });
      const [body = ''] = bodies;
      for (const word of ['nightly', '1001', 'rror', 'ailed', ':red_circle:', 'Attention', '/runs/']) {
        expect(body.replaceAll('job.run.errored', '')).not.toContain(word);
      }
      const sent = JSON.parse(body);
      if (type === 'http') {
        expect(sent).toMatchObject({
          test: true,
          eventType: 'job.run.completed',
          data: { runStatusCode: 10, runId: '0' },
        });
      } else if (type === 'slack') expect(sent.text).toMatch(/^Test message/);
      else expect(sent.attachments[0].content.body[0].text).toMatch(/^Test message/);
    },
  );

  it('says why nothing could be sent at all', async () => {
    const given = { ...INPUT, type: 'email', client_url: 'mailto:a@example.com' };
    const { id } = madeSchema.parse((await ask('POST', OWN, given)).body).data;
    const { status: answered, body } = await ask('GET', `${ONE}/${id}/test`);
    expect([answered, body]).toMatchObject([
      200,
      { data: { verification_error: expect.stringContaining('set smtp-url'), verification_status_code: '0' } },
    ]);
  });

  it('says why nothing was answered', async () => {
    const { id } = await make({ client_url: 'http://10.0.0.1/' });
    expect((await ask('GET', `${ONE}/${id}/test`)).body).toMatchObject({
      data: { verification_error: expect.stringContaining('10.0.0.1 is private'), verification_status_code: '0' },
    });
  });
});

describe('the URL of a subscription', () => {
  const given = (type: string, client_url: string) => ({ ...INPUT, type, client_url });
  const urlsOf = async (id: string, caller: string) => {
    const listSchema = z.object({ data: z.array(z.object({ id: z.string(), client_url: z.string() })) });
    const oneSchema = z.object({ data: z.object({ client_url: z.string() }) });
    const urls: (string | undefined)[] = [];
    for (const path of [`${ONE}/${id}`, `${OWN}/${id}`]) {
      urls.push(oneSchema.parse((await server.ask('GET', path, caller)).body).data.client_url);
    }
    for (const path of [ALL, OWN]) {
      const { data } = listSchema.parse((await server.ask('GET', path, caller)).body);
      urls.push(data.find((one) => one.id === id)?.client_url);
    }
    return [...new Set(urls)];
  };

  it.each([
    ['slack', 'https://hooks.slack.com/services/T0/B0/sesame', 'https://hooks.slack.com/…'],
    ['teams', 'https://x.logic.azure.com/workflows/1?sig=sesame', 'https://x.logic.azure.com/…'],
    ['http', 'https://hooks.example.com/a?key=sesame', 'https://hooks.example.com/a?…'],
    ['email', 'mailto:a@example.com', 'mailto:a@example.com'],
  ])('(%s) is shown to who may write, masked for others, and sealed in the state', async (type, url, masked) => {
    const made = await ask('POST', OWN, given(type, url));
    const { id } = madeSchema.parse(made.body).data;
    expect(made.body).toMatchObject({ data: { client_url: url } });
    expect(await urlsOf(id, token)).toEqual([url]);
    expect(await urlsOf(id, await server.token('webhooks_only'))).toEqual([url]);
    expect(await urlsOf(id, await server.token('read_only'))).toEqual([masked]);
    const kept = await server.state.subscriptions.find(FIRST_ACCOUNT_ID, id);
    expect(kept?.shownUrl).toBe(masked);
    expect(kept?.sealedUrl).toMatch(/^v1\./);
    expect(JSON.stringify(kept)).not.toContain('sesame');
  });

  it('that is given again is no new one, and a masked one is refused', async () => {
    const url = 'https://hooks.slack.com/services/sesame';
    const { id } = madeSchema.parse((await ask('POST', OWN, given('slack', url))).body).data;
    for (const [method, path] of [
      ['PUT', `${ONE}/${id}`],
      ['PATCH', `${OWN}/${id}`],
    ] as const) {
      expect((await ask(method, path, { client_url: url })).body).toMatchObject({ data: { client_url: url } });
      const refused = await ask(method, path, { client_url: 'https://hooks.slack.com/…' });
      expect([refused.status, refused.body]).toMatchObject([
        400,
        { status: { user_message: expect.stringContaining('client_url: is masked') } },
      ]);
    }
    expect(await server.state.subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({ urlVersion: 1 });
    await ask('PUT', `${ONE}/${id}`, { client_url: `${url}2` });
    expect(await urlsOf(id, token)).toEqual([`${url}2`]);
    expect(await server.state.subscriptions.find(FIRST_ACCOUNT_ID, id)).toMatchObject({ urlVersion: 2 });
  });

  it('that was sealed with another key is masked, and can be given anew', async () => {
    const { id } = await make();
    const sealedUrl = new SecretBox(Buffer.alloc(32, 2)).seal('https://lost.example.com/', id);
    await server.state.subscriptions.change(FIRST_ACCOUNT_ID, id, () => ({ sealedUrl }), 1);
    expect(await urlsOf(id, token)).toEqual([INPUT.client_url]);
    await ask('PUT', `${ONE}/${id}`, { client_url: 'https://new.example.com/' });
    expect(await urlsOf(id, token)).toEqual(['https://new.example.com/']);
  });
});

describe('webhooks of run-bridge’s own', () => {
  const GIVEN = {
    ...{ ...INPUT, type: 'slack', headers: { 'X-Key': 'hidden' }, authorization: false, max_per_minute: 60 },
    filters: {
      ...{ environments: ['prod'], statuses: ['errored'], transitions: ['recovery'] },
      ...{ verdicts: ['failed'], owners: ['ana@example.com'], models: ['stg_*'] },
    },
    ...{ per_owner: true, hold_repeats: true },
  };

  it('have details of runs in payloads alone', async () => {
    const given = { ...INPUT, type: 'slack', client_url: 'https://hooks.slack.com/services/a', run_details: true };
    const words = 'run_details: is for payloads, of types http and cloudevents; slack names the nodes anyway.';
    expect(await ask('POST', OWN, given)).toMatchObject({ status: 400, body: { status: { user_message: words } } });
  });

  it('have filters, headers, a rate cap and a kind; headers are not shown', async () => {
    const { status, body } = await ask('POST', OWN, GIVEN);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      data: {
        ...{ type: 'slack', state: 'active', has_headers: true, authorization: false, standard_headers: true },
        filters: {
          ...{ environments: ['prod'], projects: [], statuses: ['errored'], transitions: ['recovery'] },
          ...{ verdicts: ['failed'], tags: [], owners: ['ana@example.com'], groups: [], models: ['stg_*'] },
        },
        ...{ per_owner: true, hold_repeats: true, run_details: false },
        max_per_minute: 60,
      },
    });
    expect(JSON.stringify(body)).not.toContain('hidden');
    const { id } = madeSchema.parse(body).data;
    const changed = await ask('PATCH', `${OWN}/${id}/`, { headers: {}, filters: {}, max_per_minute: null });
    expect(changed.body).toMatchObject({
      data: { has_headers: false, max_per_minute: null, filters: { environments: [], statuses: [] }, type: 'slack' },
    });
    expect((await ask('GET', OWN)).body).toMatchObject({ extra: { pagination: { total_count: 1 } } });
    expect((await ask('DELETE', `${OWN}/${id}`)).status).toBe(200);
    expect((await ask('GET', `${OWN}/${id}`)).status).toBe(404);
  });

  it.each([
    [{ type: 'fax' }, 'type'],
    [{ type: 'email' }, 'client_url'],
    [{ headers: { authorization: 'x' } }, 'headers'],
    [{ headers: { 'a b': 'x' } }, 'headers'],
    [{ headers: { a: 'x\r\ny: z' } }, 'headers'],
    [{ filters: { statuses: ['running'] } }, 'filters.statuses'],
    [{ filters: { branch: [] } }, 'filters'],
    [{ max_per_minute: 0 }, 'max_per_minute'],
  ])('are refused with the name of the field: %j', async (given, field) => {
    const { status, body } = await ask('POST', OWN, { ...INPUT, ...given });
    expect(status).toBe(400);
    expect(body).toMatchObject({ status: { user_message: expect.stringContaining(field) } });
  });

  it.each([
    [{ headrs: {} }, 'headrs: there is no such field (perhaps you mean headers).'],
    [{ favourite: 1 }, 'favourite: there is no such field.'],
    [{ id: '' }, 'id: is only answered, and cannot be set; leave it out.'],
    [{ has_headers: true }, 'has_headers: is only answered, and cannot be set; leave it out.'],
    [{ filters: { enviroments: [] } }, 'filters.enviroments: there is no such field (perhaps you mean environments).'],
    [{ filters: 7 }, 'filters: must be an object.'],
    [
      { filters: { verdicts: ['bad'] } },
      'filters.verdicts.0: is none of success, warned, failed, canceled, recovered.',
    ],
    [{ filters: { owners: 'ana' } }, 'filters.owners: is no list of names.'],
    [{ per_owner: true }, 'per_owner: is for chats and mail; http has whole runs, and run_details names the nodes.'],
    [{ hold_repeats: 1 }, 'hold_repeats: is neither true nor false.'],
    [{ filters: { statuses: ['running'] } }, 'filters.statuses.0: is none of success, errored, cancelled.'],
    [{ headers: 'a: b' }, 'headers: must be an object of names and values, for example {"X-Api-Key": "…"}.'],
    [{ headers: { 'a b': 'x' } }, 'headers.a b: is not the name of a header: up to 100 letters, digits and hyphens.'],
    [{ headers: { Host: 'x' } }, 'headers.Host: is a header that each delivery sets itself; choose another name.'],
    [{ headers: { a: 1 } }, 'headers.a: must be a string.'],
    [
      { headers: { a: 'x\ny' } },
      'headers.a: contains a character that headers cannot carry, such as a line break or an umlaut.',
    ],
    [{ headers: { a: 'x'.repeat(4_001) } }, 'headers.a: is longer than 4,000 characters.'],
    [{ max_per_minute: 0 }, 'max_per_minute: is less than 1.'],
    [{ authorization: 'no' }, 'authorization: is neither true nor false.'],
  ])('are refused in words that say what is wrong: %j', async (given, message) => {
    const { id } = await make();
    for (const [method, path] of [
      ['POST', OWN],
      ['PATCH', `${OWN}/${id}`],
    ] as const) {
      const { status, body } = await ask(method, path, { ...INPUT, ...given });
      expect([status, body]).toMatchObject([400, { status: { user_message: message } }]);
    }
  });

  it('have their fields ignored by the platform API, which takes what is only answered as well', async () => {
    const more = { ...{ id: '', http_status_code: '0', account_id: 7, hmac_secret: 'x' }, headrs: {}, type: 'slack' };
    const { status, body } = await ask('POST', ALL, { ...INPUT, ...more });
    expect(status).toBe(201);
    const { id } = madeSchema.parse(body).data;
    expect((await ask('PUT', `${ONE}/${id}`, { ...INPUT, ...more })).status).toBe(200);
    expect((await ask('GET', `${OWN}/${id}`)).body).toMatchObject({ data: { type: 'http', has_headers: false } });
  });

  it('take mail addresses', async () => {
    const mail = { ...INPUT, type: 'email', client_url: 'mailto:a@example.com,b@example.com' };
    const { status, body } = await ask('POST', OWN, mail);
    expect(status).toBe(201);
    const { id } = madeSchema.parse(body).data;
    expect((await ask('PATCH', `${OWN}/${id}`, { type: 'http' })).status).toBe(400);
  });

  it('get a new secret beside the old one, until that is ended', async () => {
    const { id, hmac_secret: first } = await make();
    const rotated = await ask('POST', `${OWN}/${id}/secret`, { overlap_seconds: 60 });
    const { hmac_secret: second } = madeSchema.parse(rotated.body).data;
    expect(second).not.toBe(first);
    expect(rotated.body).toMatchObject({ data: { old_secret_until: '1767225660000000' } });
    expect((await ask('DELETE', `${OWN}/${id}/old-secret`)).body).toMatchObject({ data: { old_secret_until: null } });
    expect((await ask('POST', `${OWN}/${id}/secret`, { overlap_seconds: -1 })).status).toBe(400);
  });

  it('show the payload that a run gives', async () => {
    const { id } = await make();
    await server.state.invocations.note([commandNote(1)], 4_000);
    const { body } = await ask('GET', `${OWN}/${id}/preview?event_type=job.run.completed&run_id=1001`);
    expect(body).toMatchObject({
      data: { eventType: 'job.run.completed', data: { runId: '1001', runStatusCode: 10 } },
    });
    expect((await ask('GET', `${OWN}/${id}/preview`)).status).toBe(200);
    expect((await ask('GET', `${OWN}/${id}/preview?run_id=7`)).status).toBe(404);
    expect((await ask('GET', `${OWN}/${id}/preview?event_type=x`)).status).toBe(400);
  });

  it('are replayed: one event, or all since a time', async () => {
    const { id } = await make({ active: false });
    await server.state.invocations.note([commandNote(1)], 4_000);
    const [event] = await eventsOf(server.state, id);
    const replay = (body: object) => ask('POST', `${OWN}/replay`, body);
    expect((await replay({ event_id: event?.id })).body).toMatchObject({ data: { replayed_count: 1 } });
    expect((await replay({ since: '2026-01-01T00:00:00Z', webhook_id: id })).body).toMatchObject({
      data: { replayed_count: 0 },
    });
    expect(parts.wakeCount).toBe(2);
    const both = { event_id: 'wev_x', since: '2026-01-01T00:00:00Z' };
    for (const [body, message] of [
      [{}, 'The body has neither an event_id nor a since'],
      [both, 'The body has neither an event_id nor a since'],
      [{ event_id: 1 }, 'event_id'],
      [{ since: 'yesterday' }, 'since: must be a time, for example 2026-01-31T12:00:00Z.'],
    ] as const) {
      const refused = await replay(body);
      expect([refused.status, refused.body]).toMatchObject([
        400,
        { status: { user_message: expect.stringContaining(message) } },
      ]);
    }
  });

  it('are not replayed where there is none: no such event, one that is still to be tried, no such subscription', async () => {
    const { id } = await make();
    await server.state.invocations.note([commandNote(1)], 4_000);
    const [event] = await eventsOf(server.state, id);
    const replay = (body: object) => ask('POST', `${OWN}/replay`, body);
    for (const event_id of ['wev_x', event?.id]) {
      const { status, body } = await replay({ event_id });
      expect([status, body]).toMatchObject([
        404,
        { status: { code: 404, user_message: expect.stringContaining(`no event ${event_id} to replay`) } },
      ]);
    }
    const { status } = await replay({ since: '2026-01-01T00:00:00Z', webhook_id: 'wsu_x' });
    expect([status, parts.wakeCount]).toEqual([404, 0]);
  });
});
