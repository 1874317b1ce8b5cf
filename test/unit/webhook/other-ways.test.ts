import { readFileSync } from 'node:fs';
import { HTTP } from 'cloudevents';
import { Router } from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { webhookRouters } from '../../../src/webhook/routes.js';
import { platformSignature } from '../../../src/webhook/secrets.js';
import { ApiServer } from '../../fake/api-server.js';
import { DETAILS_OF_ONE_ERROR } from '../../fake/run-details.js';
import { SECRET, WebhookBench } from '../../fake/webhook-bench.js';
import { commandNote, NO_DETAILS, TEST_BOX } from '../../fake/webhook-facts.js';
import { webhookParts } from '../../fake/webhook-parts.js';

const place = { job: 'nightly', environment: 'production', project: 'shop' };
const ERRORED = { verdict: 'error', statusMessage: 'Boom' } as const;

describe('deliveries of a real dispatcher', () => {
  let bench: WebhookBench;
  beforeEach(async () => {
    bench = await WebhookBench.open();
    bench.readDetails = async () => DETAILS_OF_ONE_ERROR;
  });
  afterEach(() => bench.close());
  const bodies = () => bench.received.map(({ body }) => JSON.parse(body));
  const seal = (text: string) => TEST_BOX.seal(text, 'wsu_a');

  it('of type cloudevents are events that its own library reads, and signed', async () => {
    await bench.subscribe('a', { kind: 'cloudevents' });
    await bench.endRun();
    await bench.pass(0);
    const [received] = bench.received;
    if (received === undefined) throw new Error('nothing was sent');
    const { headers, body } = received;
    const event = HTTP.toEvent<Record<string, unknown>>({ headers, body });
    if (Array.isArray(event)) throw new Error('these are several events');
    expect(headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(event).toMatchObject({
      ...{ specversion: '1.0', source: '/run-bridge/accounts/10001', type: 'job.run.completed', subject: 'runs/1001' },
      ...{ id: headers['webhook-id'], accountid: '10001', webhookid: 'wsu_a', webhookname: 'a' },
      ...{ datacontenttype: 'application/json', data: { jobName: 'nightly', runId: '1001', runStatusCode: 10 } },
    });
    expect(headers.authorization).toBe(platformSignature(SECRET, Buffer.from(body)));
  });

  it('carry an Authorization of their own, which the log does not show, and their signature elsewhere', async () => {
    const sealedHeaders = seal('{"Authorization":"Bearer sesame"}');
    await bench.subscribe('a', { sealedHeaders, signatureHeader: 'x-signature' });
    await bench.subscribe('b', {
      sealedHeaders: TEST_BOX.seal('{"AUTHORIZATION":"Basic sesame"}', 'wsu_b'),
      hasAuthorization: false,
    });
    await bench.endRun();
    await bench.pass(0);
    const of = (path: string) => bench.received.find((one) => one.path === path);
    expect(of('/a')?.headers.authorization).toBe('Bearer sesame');
    expect(of('/a')?.headers['x-signature']).toBe(platformSignature(SECRET, Buffer.from(of('/a')?.body ?? '')));
    expect(of('/b')?.headers.authorization).toBe('Basic sesame');
    for (const name of ['a', 'b']) {
      const [event] = await bench.events(name);
      expect(JSON.stringify(await bench.state.webhookEvents.attemptsOf(event?.id ?? ''))).not.toContain('sesame');
    }
  });

  it('with a body of their own may be no JSON', async () => {
    await bench.subscribe('a', {
      sealedHeaders: seal('{"Content-Type":"text/plain"}'),
      sealedTemplate: seal('{{ message.title }}{{ data.nothing }}'),
    });
    await bench.endRun('nightly', ERRORED);
    await bench.pass(0);
    expect(bench.received).toMatchObject([{ body: DETAILS_TITLE, headers: { 'content-type': 'text/plain' } }]);
  });

  it('to PagerDuty trigger an incident of the job when it fails, and resolve it when it is well again', async () => {
    await bench.subscribe('a', {
      ...{ kind: 'pagerduty', eventTypes: ['job.run.started', 'job.run.errored', 'job.run.completed'] },
      sealedRoutingKey: seal('sesame'),
    });
    bench.answer = (_path, count) => ({ status: count === 1 ? 500 : 202 });
    await bench.endRun('nightly', ERRORED);
    for (const waitMs of [0, 10_000]) await bench.pass(waitMs);
    await bench.endRun('nightly');
    await bench.endRun('other');
    await bench.pass(0);
    expect(bodies().map(({ event_action, dedup_key, routing_key }) => [event_action, dedup_key, routing_key])).toEqual([
      ['trigger', expect.stringMatching(/^run-bridge:account:10001:job:\d+:environment:\d+$/), 'sesame'],
      ...Array(2).fill(['trigger', bodies()[0].dedup_key, 'sesame']),
      ['resolve', bodies()[0].dedup_key, 'sesame'],
      ['resolve', expect.not.stringContaining(bodies()[0].dedup_key), 'sesame'],
    ]);
    expect(bodies()[0]).toMatchObject({
      client: 'run-bridge',
      payload: { summary: DETAILS_TITLE, source: 'production', severity: 'error', component: 'nightly', group: 'shop' },
    });
    for (const event of await bench.events('a')) {
      expect(event.state).toBe('delivered');
      expect(JSON.stringify(await bench.state.webhookEvents.attemptsOf(event.id))).not.toContain('sesame');
    }
  });

  it('to Discord are an embed within its limits that calls nobody', async () => {
    const long = { ...DETAILS_OF_ONE_ERROR.errors[0], reason: `@everyone *<@1>* ${'x'.repeat(9_000)}` };
    bench.readDetails = async () => ({ ...DETAILS_OF_ONE_ERROR, errors: Array(10).fill(long) });
    await bench.subscribe('a', { kind: 'discord' });
    await bench.endRun('nightly', ERRORED);
    await bench.pass(0);
    const embedSchema = z.object({
      title: z.string().max(256),
      description: z.string().max(4_096),
      fields: z.array(z.object({ name: z.string().min(1).max(256), value: z.string().min(1).max(1_024) })).max(25),
    });
    const { embeds, allowed_mentions } = bodies()[0];
    const embed = embedSchema.parse(embeds[0]);
    expect(JSON.stringify(embed).length).toBeLessThan(6_000);
    expect(embed.description).toContain('\\<@1\\>\\*');
    expect(allowed_mentions).toEqual({ parse: [] });
  });
});

const DETAILS_TITLE = 'nightly · production failed: model broken: Table "orders" does not exist';

describe('the native API', () => {
  const OWN = '/api/run-bridge/v1/webhooks';
  const INPUT = { name: 'n', client_url: 'https://hooks.example.com/', event_types: ['job.run.completed'] };
  const madeSchema = z.object({ data: z.looseObject({ id: z.string() }) });
  let server: ApiServer;
  let token: string;
  beforeEach(async () => {
    const later = Router();
    server = await ApiServer.open(() => [later]);
    const runDetails = { ...NO_DETAILS, read: async () => DETAILS_OF_ONE_ERROR };
    later.use(...webhookRouters(webhookParts(server.state, server.clock, runDetails).routing));
    token = await server.token();
  });
  afterEach(() => server.close());
  const ask = (method: string, path: string, body?: unknown) => server.ask(method, path, token, body);

  it('takes each example of the documentation, which gives the body that stands beside it', async () => {
    const page = readFileSync(new URL('../../../docs/alert.md', import.meta.url), 'utf8');
    const section = page.slice(page.indexOf('## Calling other APIs'), page.indexOf('## Alerts on metrics'));
    const blocks = [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => JSON.parse(text));
    expect(blocks).toHaveLength(6);
    await server.state.invocations.note([commandNote(1, { scope: place })], 4_000);
    for (let at = 0; at < blocks.length; at += 2) {
      const [given, expected] = blocks.slice(at, at + 2);
      const made = await ask('POST', OWN, given);
      expect([made.status, made.body]).toMatchObject([201, { data: { has_headers: true, authorization: false } }]);
      expect(JSON.stringify(made.body)).not.toMatch(/github_pat|GenieKey|Bearer/);
      const { id } = madeSchema.parse(made.body).data;
      const preview = await ask('GET', `${OWN}/${id}/preview?event_type=${given.event_types[0]}&run_id=1001`);
      expect(preview.body).toMatchObject({ data: expected });
    }
  });

  it.each([
    [{ headers: { authorization: 'x' } }, 'headers.authorization: deliveries carry their signature in it'],
    [{ headers: { 'X-Sig': 'x' }, signature_header: 'x-sig' }, 'headers.X-Sig: deliveries carry their signature in it'],
    [{ headers: { 'Content-Type': 'text/plain' } }, 'headers.Content-Type: is set by each delivery'],
    [{ signature_header: 'webhook-id' }, 'signature_header: is a header that each delivery sets itself'],
    [
      { body_template: '{"a": "{{ data.jobname }}"}' },
      'body_template: undefined variable: data.jobname, line:1, col:11.',
    ],
    [{ body_template: 'a {{ data.jobName }}' }, 'body_template: makes no JSON: '],
    [{ body_template: '{% include "/etc/passwd" %}' }, 'body_template: tag "include" not found'],
    [{ body_template: '{% for a in (1..9999999) %}x{% endfor %}' }, 'body_template: memory alloc limit exceeded'],
    [{ body_template: '{{ data.jobName' }, 'body_template: output "{{ data.jobName" not closed'],
    [{ body_template: '{}', type: 'slack' }, 'body_template: belongs to type http, not to slack.'],
    [{ routing_key: 'x' }, 'routing_key: belongs to type pagerduty, not to http.'],
    [{ type: 'pagerduty' }, 'routing_key: is missing; give that of a service.'],
    [{ type: 'pagerduty', routing_key: 'x', event_types: ['job.run.started'] }, 'event_types: a start is no incident'],
  ])('refuses what does not fit together: %j', async (given, message) => {
    const { status, body } = await ask('POST', OWN, { ...INPUT, ...given });
    expect([status, body]).toMatchObject([400, { status: { user_message: expect.stringContaining(message) } }]);
  });

  it('checks a change together with what stays', async () => {
    const first = await ask('POST', OWN, { ...INPUT, authorization: false, headers: { Authorization: 'Bearer x' } });
    const { id } = madeSchema.parse(first.body).data;
    const refused = await ask('PATCH', `${OWN}/${id}`, { authorization: true });
    expect([refused.status, refused.body]).toMatchObject([
      400,
      { status: { user_message: expect.stringContaining('headers.Authorization: deliveries carry their signature') } },
    ]);
    const given = { authorization: true, signature_header: 'X-Sig', body_template: '{"a":1}' };
    expect((await ask('PATCH', `${OWN}/${id}`, given)).body).toMatchObject({
      data: { authorization: true, signature_header: 'x-sig', body_template: '{"a":1}' },
    });
    const reader = await server.token('read_only');
    expect((await server.ask('GET', `${OWN}/${id}`, reader)).body).toMatchObject({ data: { body_template: null } });
    const kept = await server.state.subscriptions.find(10_001, id);
    expect(JSON.stringify(kept)).not.toContain('{\\"a');
  });

  it('lets another webhook, or an address, hear of archiving, and runs be expected', async () => {
    const first = await ask('POST', OWN, { ...INPUT, expect: 'every 24h', notify_on_archive: 'mailto:a@example.com' });
    const { id, notify_on_archive: mail } = madeSchema.parse(first.body).data;
    expect(first.body).toMatchObject({
      data: { expect: 'every 1d', notify_on_archive: expect.stringMatching(/^wsu_/) },
    });
    expect((await ask('GET', `${OWN}/${mail}`)).body).toMatchObject({
      data: { type: 'email', client_url: 'mailto:a@example.com', name: 'archiving of n', event_types: [] },
    });
    const second = await ask('POST', OWN, { ...INPUT, notify_on_archive: 'mailto:a@example.com' });
    expect(second.body).toMatchObject({ data: { notify_on_archive: mail } });
    const usual = await ask('PATCH', `${OWN}/${id}`, { expect: 'usual' });
    expect(usual.body).toMatchObject({ data: { expect: 'usual' } });
    const patched = await ask('PATCH', `${OWN}/${id}`, { expect: null, notify_on_archive: null });
    expect(patched.body).toMatchObject({ data: { expect: null, notify_on_archive: null } });
    for (const [given, message] of [
      [{ notify_on_archive: id }, 'notify_on_archive: is this webhook itself; give another one.'],
      [{ notify_on_archive: 'wsu_x' }, 'notify_on_archive: there is no webhook wsu_x in this account.'],
      [{ notify_on_archive: 'me' }, 'notify_on_archive: is neither the id of a webhook nor mailto: and an address.'],
      [{ expect: '24h' }, 'expect: must be a time from 1m to 31d after the word every, such as every 24h, or usual.'],
      [{ expect: 'every 1s' }, 'expect: must be a time from 1m to 31d'],
    ] as const) {
      const { status, body } = await ask('PATCH', `${OWN}/${id}`, given);
      expect([status, body]).toMatchObject([400, { status: { user_message: expect.stringContaining(message) } }]);
    }
  });

  it('never shows a routing key', async () => {
    const made = await ask('POST', OWN, { ...INPUT, type: 'pagerduty', routing_key: 'sesame' });
    expect([made.status, made.body]).toMatchObject([201, { data: { type: 'pagerduty', has_routing_key: true } }]);
    expect(JSON.stringify(made.body)).not.toContain('sesame');
  });
});
