import { expect, it } from 'vitest';
import type { RunFacts } from '../../../src/webhook/event.js';
import { payloadOf } from '../../../src/webhook/senders.js';
import { detailsOfLog } from '../../fake/run-details.js';
import { NO_DETAILS } from '../../fake/webhook-facts.js';
import { readLog } from '../export/mapping/read-sample.js';

const FACTS: RunFacts = {
  ...{ jobId: 4_001, jobName: 'nightly', runId: 1_001, environmentId: 3_001, environmentName: 'production' },
  ...{ projectId: 2_001, projectName: 'shop', engineVersion: '2.0.0', status: 20, statusMessage: null, reason: null },
  ...{ startedUnixMs: 1_683_193_184_999, finishedUnixMs: null, erroredUnixMs: null },
};
const SUBSCRIPTION = { id: 'wsu_1', accountId: 10_001, name: 'n', hasRunDetails: false };
const EVENT = { id: 'wev_1', eventType: 'job.run.errored', facts: FACTS, createdUnixMs: 1_683_193_184_490 } as const;

it('has the keys of the hosted platform, in their order, and both names of the version', async () => {
  const payload = await payloadOf(
    SUBSCRIPTION,
    { ...EVENT, facts: { ...FACTS, erroredUnixMs: 1_683_193_190_000 } },
    NO_DETAILS,
  );
  expect(JSON.stringify(payload)).toBe(
    '{"accountId":10001,"eventId":"wev_1","timestamp":"2023-05-04T09:39:44.490Z","eventType":"job.run.errored","webhookId":"wsu_1","webhookName":"n","data":{"jobId":"4001","jobName":"nightly","runId":"1001","environmentId":"3001","environmentName":"production","dbtVersion":"2.0.0","toolVersion":"2.0.0","projectName":"shop","projectId":"2001","runStatus":"Errored","runStatusCode":20,"runStatusMessage":"None","runReason":"Started outside of the platform","runStartedAt":"2023-05-04T09:39:44Z","runErroredAt":"2023-05-04T09:39:50Z"}}',
  );
});

it('says when a run was finished in the event that says that it was', async () => {
  const { data } = await payloadOf(
    SUBSCRIPTION,
    { ...EVENT, facts: { ...FACTS, finishedUnixMs: 1_683_193_190_000 } },
    NO_DETAILS,
  );
  expect(Object.keys(data).at(-1)).toBe('runFinishedAt');
});

it('says which artifacts of a run never came, beside its end, and nothing of them where all are there', async () => {
  const missingArtifacts = { count: 3, paths: ['manifest.json', 'run/a.sql'], reason: 'the bucket is gone' };
  const facts = { ...FACTS, finishedUnixMs: 1_683_193_190_000 };
  const event = { ...EVENT, eventType: 'job.run.completed' as const };
  const { data } = await payloadOf(SUBSCRIPTION, { ...event, facts: { ...facts, missingArtifacts } }, NO_DETAILS);
  expect(Object.keys(data).slice(-2)).toEqual(['runFinishedAt', 'missingArtifacts']);
  expect(JSON.stringify(data.missingArtifacts)).toBe(
    '{"count":3,"paths":["manifest.json","run/a.sql"],"reason":"the bucket is gone"}',
  );
  const whole = await payloadOf(SUBSCRIPTION, { ...event, facts }, NO_DETAILS);
  expect(whole.data).not.toHaveProperty('missingArtifacts');
});

it.each([
  [1_683_193_184_000, '2023-05-04T09:39:44.000Z'],
  [1_683_193_184_400, '2023-05-04T09:39:44.400Z'],
  [1_683_193_184_007, '2023-05-04T09:39:44.007Z'],
])('writes the time %d as %s', async (createdUnixMs, timestamp) => {
  const payload = await payloadOf(SUBSCRIPTION, { ...EVENT, createdUnixMs }, NO_DETAILS);
  expect(payload.timestamp).toBe(timestamp);
});

it('has counts and failed nodes, redacted, where the subscription asks for them', async () => {
  const reader = detailsOfLog(readLog('samples/build-mixed/otel.jsonl'), { redaction: 'literals' });
  const asking = { ...SUBSCRIPTION, hasRunDetails: true };
  const { run_bridge: details } = await payloadOf(asking, EVENT, reader);
  expect(details).toMatchObject({
    ...{ verdict: 'failed', recovered: false, omitted_failed_node_count: 0 },
    counts: { success: 13, warned: 1, failed: 2, error: 1, skipped: 4 },
  });
  expect(
    details?.failed_nodes.map(({ unique_id, verdict, path, line, group }) => [unique_id, verdict, path, line, group]),
  ).toEqual([
    ['model.shop.broken', 'error', 'models/marts/broken.sql', null, 'finance'],
    ['unit_test.shop.ut_target.ut_wrong', 'failed', 'models/schema.yml', 45, null],
    ['test.shop.status_strict.0c25ec6282', 'failed', 'models/schema.yml', 25, 'finance'],
  ]);
  expect(details?.failed_nodes[0]?.message).toContain('Referenced column "nonexistent_column" not found');
  expect(await payloadOf(SUBSCRIPTION, EVENT, reader)).not.toHaveProperty('run_bridge');
  expect(await payloadOf(asking, { ...EVENT, eventType: 'job.run.started' }, reader)).not.toHaveProperty('run_bridge');
  expect(await payloadOf(asking, { ...EVENT, isTest: true }, reader)).not.toHaveProperty('run_bridge');
});
