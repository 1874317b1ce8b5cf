import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventSelection, OutgoingEvent, RunFacts, WebhookEvent } from '../../../src/webhook/event.js';
import {
  discordMessage,
  mailMessage,
  pagerDutyAlert,
  runMessage,
  slackMessage,
  teamsMessage,
} from '../../../src/webhook/messages.js';
import { type RunDetails, RunDetailsReader } from '../../../src/webhook/run-details.js';
import { MailSender } from '../../../src/webhook/senders.js';
import { FRESH_STANDING } from '../../../src/webhook/subscription.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { type OwnApi, openOwnApi } from '../../fake/own-api.js';
import { NO_NODES, NONE_OMITTED, QUIET } from '../../fake/run-details.js';
import { NO_DETAILS, subscription, TEST_BOX } from '../../fake/webhook-facts.js';
import { until } from '../../tool/until.js';

const FACTS: RunFacts = {
  ...{ jobId: 4_001, jobName: 'nightly', runId: 1_001, environmentId: 3_001, environmentName: 'a<b>&_c' },
  ...{ projectId: 2_001, projectName: 'shop', engineVersion: '2.0.0', status: 20, statusMessage: 'x', reason: null },
  ...{ startedUnixMs: 1_000, finishedUnixMs: 43_000, erroredUnixMs: null },
};
const EVENT: WebhookEvent = {
  ...{ id: 'wev_1', subscriptionId: 'wsu_1', eventType: 'job.run.completed', facts: FACTS, createdUnixMs: 0 },
  ...{
    state: 'pending',
    filteredReason: null,
    roundCount: 0,
    attemptCount: 0,
    dueUnixMs: 0,
    leaseUntilUnixMs: 0,
    httpStatusCode: null,
  },
};
const place = (uniqueId: string, label: string, path: string | null, line: number | null) => ({
  ...{ uniqueId, label, path, line },
  ...{ verdict: 'error' as const, group: null, since: null },
});
const STORY: RunDetails = {
  ...QUIET,
  counts: { ...NO_NODES, success: 5, error: 1, failed: 2, skipped: 3 },
  errors: [
    { ...place('model.shop.broken', 'model broken', 'models/broken.sql', null), reason: 'Table ? does not exist' },
  ],
  otherErrors: ['syntax error: unexpected end of input'],
  failedTests: [{ ...place('test.shop.unique_id', 'test unique_id', 'models/a.yml', 7), reason: '3 failing rows' }],
  staleSources: [
    {
      ...place('source.shop.ext.raw_orders', 'source ext.raw_orders', null, null),
      reason: 'last updated 325 days 13 h ago',
    },
  ],
  otherOutcomes: [{ ...place('model.shop.later', 'model later', null, null), reason: 'deferred' }],
  ...{
    omitted: { ...NONE_OMITTED, errors: 2 },
    skipped: [{ causeLabel: 'model broken', labels: ['model a', 'model b'], count: 3 }],
  },
  ...{ skippedCount: 3, statusMessage: 'Executed with errors', url: 'https://runs.example.com/r/1001' },
};

const FAILED = 'nightly · a<b>&_c failed: model broken: Table ? does not exist (+5)';

describe('a message', () => {
  it.each([
    ['job.run.started', 3, 'nightly · a<b>&_c started', ':white_circle:', 'Default'],
    ['job.run.errored', 20, FAILED, ':red_circle:', 'Attention'],
    ['job.run.completed', 10, 'nightly · a<b>&_c succeeded', ':large_green_circle:', 'Good'],
    ['job.run.completed', 20, FAILED, ':red_circle:', 'Attention'],
    ['job.run.completed', 30, 'nightly · a<b>&_c was canceled', ':white_circle:', 'Default'],
  ] as const)('of %s with status %d says: %s, and is coloured by it', (eventType, status, title, circle, color) => {
    const message = runMessage({ eventType, facts: { ...FACTS, status } }, STORY);
    expect(message.title).toBe(title);
    expect(slackMessage(message).blocks[0]?.text.text).toContain(circle);
    expect(teamsMessage(message).attachments[0]?.content.body[0]).toMatchObject({ color });
  });

  it('for Slack has the verdict, the failed nodes and tests, and the link, escaped', () => {
    const { text, blocks } = slackMessage(runMessage(EVENT, STORY));
    const title = 'nightly · a&lt;b&gt;&amp;_c failed: model broken: Table ? does not exist (+5)';
    expect(text).toBe(title);
    expect(blocks.map((block) => block.text.text)).toEqual([
      `:red_circle: *${title}*  <https://runs.example.com/r/1001|open>`,
      'Run: #1001\nProject: shop\nEnvironment: a&lt;b&gt;&amp;_c\nDuration: 42.0 s\nNodes: 1 error, 2 failed, 3 skipped, 5 success',
      '*Failed nodes (3)*\n• model broken (models/broken.sql): Table ? does not exist\n• and 2 more',
      '*Other errors (1)*\n• syntax error: unexpected end of input',
      '*Failed tests (1)*\n• test unique_id (models/a.yml:7): 3 failing rows',
      '*Stale sources (1)*\n• source ext.raw_orders: last updated 325 days 13 h ago',
      '*Skipped (3)*\n• after model broken: model a, model b and 1 more',
      '*Other outcomes, in the words of the engine (1)*\n• model later: deferred',
    ]);
  });

  it('for Slack puts long lists into several blocks, as each takes 3,000 characters', () => {
    const errors = Array.from({ length: 10 }, (_, index) => ({
      ...place(`model.shop.m${index}`, `model m${index}`, null, null),
      reason: 'x'.repeat(700),
    }));
    const texts = slackMessage(runMessage(EVENT, { ...STORY, errors })).blocks.map((block) => block.text.text);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThanOrEqual(3_000);
    for (const { label, reason } of errors) expect(texts.join('\n')).toContain(`• ${label}: ${reason}`);
  });

  it('that a run has started lists no failures, and no end, also when it is sent again after the run has failed', () => {
    const { facts, sections } = runMessage({ ...EVENT, eventType: 'job.run.started' }, STORY);
    expect(sections).toEqual([]);
    expect(facts.map(([name]) => name)).toEqual(['Run', 'Project', 'Environment']);
  });

  it('about the failures of one owner names the owner, and how many others there are', () => {
    const ofOwner = (selection: EventSelection) =>
      runMessage({ ...EVENT, facts: { ...FACTS, selection } }, STORY).facts;
    expect(ofOwner({ owner: 'ana', nodeIds: ['model.shop.broken'], otherCount: 2 })).toEqual(
      expect.arrayContaining([
        ['Owner', 'ana'],
        ['Left out', '2 other nodes that failed or warn'],
      ]),
    );
    expect(ofOwner({ owner: null })).toContainEqual(['Owner', 'nobody']);
    expect(ofOwner({}).map(([name]) => name)).not.toContain('Owner');
  });

  it.each([
    ['warned', { warned: 1 }, undefined, 'succeeded with warnings: test unique_id: 3 failing rows'],
    [
      'warned, after a failure',
      { warned: 1 },
      'recovery',
      'succeeded again with warnings: test unique_id: 3 failing rows',
    ],
    ['recovered', {}, 'recovery', 'succeeded again'],
  ] as const)('of a run that %s says so', (_verdict, counts, transition, words) => {
    const details = { ...QUIET, counts: { ...NO_NODES, ...counts }, warnings: STORY.failedTests };
    const facts = { ...FACTS, status: 10, ...(transition !== undefined && { transition }) } as const;
    expect(runMessage({ ...EVENT, facts }, details).title).toBe(`nightly · a<b>&_c ${words}`);
  });

  it('that a run is over says how many artifacts never came, and why, in every form', () => {
    const missingArtifacts = { count: 30, paths: ['manifest.json'], reason: 'the bucket is gone' };
    const message = runMessage({ ...EVENT, facts: { ...FACTS, missingArtifacts } }, STORY);
    const said = 'Artifacts: 30 cannot be downloaded: the bucket is gone';
    expect(slackMessage(message).blocks[1]?.text.text).toContain(`\n${said}`);
    expect(mailMessage(message).text).toContain(said);
    const [attachment] = teamsMessage(message).attachments;
    expect(attachment?.content.body).toContainEqual(
      expect.objectContaining({
        facts: expect.arrayContaining([{ title: 'Artifacts', value: '30 cannot be downloaded: the bucket is gone' }]),
      }),
    );
    expect(mailMessage(runMessage(EVENT, STORY)).text).not.toContain('Artifacts:');
  });

  it('for Slack calls nobody, whatever a job is called', () => {
    const { text } = slackMessage(runMessage({ ...EVENT, facts: { ...FACTS, jobName: '<!channel>' } }, STORY));
    expect(text).toMatch(/^&lt;!channel&gt; · .* failed/);
  });

  it('for Teams is an Adaptive Card with the same', () => {
    const [attachment] = teamsMessage(runMessage(EVENT, STORY)).attachments;
    const text = JSON.stringify(attachment?.content.body);
    for (const part of [
      'nightly · a<b>&\\\\_c failed',
      'model broken (models/broken.sql): Table ? does not exist',
      'unique\\\\_id (models/a.yml:7): 3 failing rows',
    ]) {
      expect(text).toContain(part);
    }
    expect(attachment?.content.actions?.[0]?.url).toBe(STORY.url);
  });

  it('keeps the limits of each chat, however much has failed with whatever characters', () => {
    const troubles = Array.from({ length: 10 }, (_, index) => ({
      ...place(
        `model.shop.${'m_'.repeat(100)}${index}`,
        `model ${'m_'.repeat(100)}${index}`,
        `models/${'a_'.repeat(100)}.sql`,
        7,
      ),
      reason: `${'_ü"&'.repeat(124)}\n${index}`,
    }));
    const lists = { errors: troubles, failedTests: troubles, staleSources: troubles, otherOutcomes: troubles };
    const otherErrors = troubles.map(({ reason }) => reason);
    const worst = { ...STORY, ...lists, otherErrors, warnings: troubles, statusMessage: '_'.repeat(2_000) };
    const names = { jobName: '_&'.repeat(100), environmentName: '_&'.repeat(100), projectName: '_&'.repeat(100) };
    const message = runMessage({ ...EVENT, facts: { ...FACTS, ...names, reason: '_'.repeat(2_000) } }, worst);
    const { blocks } = slackMessage(message);
    expect(blocks.length).toBeLessThanOrEqual(50);
    expect(Math.max(...blocks.map(({ text }) => text.text.length))).toBeLessThanOrEqual(3_000);
    const card = teamsMessage(message);
    expect(Buffer.byteLength(JSON.stringify(card))).toBeLessThanOrEqual(28 * 1_024);
    expect(card.attachments[0]?.content.body.at(-1)).toMatchObject({ text: '…' });
    const [embed] = discordMessage(message).embeds;
    const { title = '', description = '', fields = [] } = embed ?? {};
    expect([title.length <= 256, description.length <= 4_096, fields.length <= 25]).toEqual([true, true, true]);
    for (const { name, value } of fields) expect([name.length <= 256, value.length <= 1_024]).toEqual([true, true]);
    const texts = [title, description, ...fields.flatMap(({ name, value }) => [name, value])];
    expect(texts.join('').length).toBeLessThanOrEqual(6_000);
    expect(pagerDutyAlert({ accountId: 1 }, EVENT, message).payload.summary.length).toBeLessThanOrEqual(1_024);
  });

  it('for mail has a subject on one line', () => {
    const { subject, text } = mailMessage(runMessage({ ...EVENT, facts: { ...FACTS, jobName: 'a\nb' } }, STORY));
    expect(subject).toBe('a b · a<b>&_c failed: model broken: Table ? does not exist (+5)');
    expect(text).toContain('Failed nodes (3):\n  - model broken (models/broken.sql): Table ? does not exist\n');
    expect(text.trimEnd().endsWith('https://runs.example.com/r/1001')).toBe(true);
  });
});

describe('the story of a run', () => {
  let api: OwnApi;
  beforeEach(async () => {
    api = await openOwnApi(['build-mixed']);
  });
  afterEach(() => api.close());

  it('names what failed, with errors redacted and rows counted', async () => {
    const deps = { ...api.measuring, webUrl: () => 'http://127.0.0.1:4380' };
    const story = await new RunDetailsReader({ ...deps, redaction: 'literals' }).read(
      10_001,
      1_001,
      'Executed with errors',
    );
    const open = await new RunDetailsReader({ ...deps, redaction: 'off' }).read(10_001, 1_001, null);
    expect(story.errors.map(({ uniqueId }) => uniqueId)).toEqual(['model.shop.broken']);
    expect(open.errors[0]?.reason).not.toBe(story.errors[0]?.reason);
    expect(story.errors[0]?.reason).toContain('Referenced column "nonexistent_column" not found in FROM clause!');
    expect(story.failedTests.every(({ reason }) => /^\d+ (failing rows?|rows? differs?)$|^$/.test(reason))).toBe(true);
    expect(story.failedTests.length).toBeGreaterThan(0);
    expect(story).toMatchObject({
      ...{ statusMessage: 'Executed with errors', url: 'http://127.0.0.1:4380/runs/1001' },
    });
    expect(await new RunDetailsReader({ ...deps, redaction: 'off' }).read(10_001, 7, null)).toMatchObject({
      errors: [],
    });
  });
});

describe('mail', () => {
  let server: Server;
  let said: string;
  let refuses: boolean;
  let silentFrom: string;
  const clock = new FakeClock();
  beforeEach(async () => {
    said = '';
    refuses = false;
    silentFrom = '-';
    server = createServer((socket) => {
      let isData = false;
      socket.write('220 mail\r\n');
      socket.on('data', (chunk) => {
        const text = chunk.toString();
        said += text;
        if (text.startsWith(silentFrom)) return;
        if (isData) {
          if (!said.includes('\r\n.\r\n')) return;
          isData = false;
          socket.write('250 taken as 7\r\n');
        } else if (/^DATA/i.test(text)) {
          isData = true;
          socket.write('354 go on\r\n');
        } else if (/^RCPT/i.test(text) && refuses) socket.write('550 no such user\r\n');
        else if (/^QUIT/i.test(text)) socket.end('221 bye\r\n');
        else socket.write('250 ok\r\n');
      });
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const to = {
    ...subscription('a', { kind: 'email', clientUrl: 'mailto:a@example.com,b@example.com' }),
    ...FRESH_STANDING,
    updatedUnixMs: 0,
    urlVersion: 1,
    nextSlotUnixMs: 0,
  };
  const send = (
    smtpUrl = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    signal = AbortSignal.timeout(5_000),
    event: OutgoingEvent = EVENT,
  ) => {
    const runDetails = { ...NO_DETAILS, read: async () => STORY };
    const sender = new MailSender({
      runDetails,
      smtpUrl,
      from: 'bridge@example.com',
      timeoutMs: 2_000,
      openBox: async () => TEST_BOX,
      clock,
    });
    return sender.send(to, event, signal);
  };

  it('goes to every address, with the id of the event', async () => {
    expect(await send()).toMatchObject({ isDelivered: true, error: null, responseBody: '250 taken as 7' });
    for (const part of ['RCPT TO:<a@example.com>', 'RCPT TO:<b@example.com>', 'Message-ID: <wev_1@example.com>']) {
      expect(said).toContain(part);
    }
    expect(said).toMatch(/^Subject: =\?UTF-8\?/m);
    expect(said).toContain('1001');
  });

  it('of a test says so first, and in a header', async () => {
    const test = { ...EVENT, isTest: true } as const;
    expect(await send(undefined, undefined, test)).toMatchObject({ isDelivered: true });
    expect(said).toMatch(/^Subject: Test message/m);
    expect(said).toMatch(/^Webhook-Test: true/im);
    expect(said).not.toMatch(/nightly|1001|failed|errors/);
  });

  it('that is refused has failed, with the words of the server', async () => {
    refuses = true;
    expect(await send()).toMatchObject({ isDelivered: false, error: expect.stringContaining('no such user') });
  });

  it('that a server drags out is given up: after three times the time of a step, or when it is cut off', async () => {
    silentFrom = 'MAIL';
    const stop = new AbortController();
    for (const end of [() => clock.advance(6_000), () => stop.abort()]) {
      said = '';
      const sending = send(undefined, stop.signal);
      await until('the mail', () => said.includes('MAIL FROM'));
      end();
      expect(await sending).toMatchObject({ isDelivered: false, error: expect.stringContaining('abort') });
    }
  });

  it('cannot be sent without a server', async () => {
    await expect(send('off')).rejects.toThrow('smtp-url');
    expect(await send('smtp://127.0.0.1:1')).toMatchObject({ isDelivered: false });
  });
});
