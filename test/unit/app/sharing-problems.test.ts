import { describe, expect, it } from 'vitest';
import { sharingProblems } from '../../../src/app/sharing-problems.js';

const right = {
  'database-url': 'postgresql://db/run_bridge',
  artifacts: { bucket: 'runs', prefix: '' },
  webhookKey: new Uint8Array(32),
  journal: {
    ...{ brokers: ['kafka:9092'], tls: null, sasl: null, groupId: 'run-bridge' },
    topics: { traces: 'otlp_spans', logs: 'otlp_logs' },
  },
} as const;

describe('a configuration for several processes', () => {
  it('is fine with a database, a bucket and a journal', () => {
    expect(sharingProblems(right, true)).toEqual([]);
  });

  it.each([
    ['a database', { 'database-url': 'off' }, true, /DATABASE_URL/],
    ['a bucket', { artifacts: 'folder' }, true, /s3:\/\/BUCKET/],
    ['a journal', { journal: null }, true, /journal: kafka/],
    ['a key of webhooks', { webhookKey: null }, true, /openssl rand/],
    ['a bridge to hand over to', {}, false, /--to URL/],
  ] as const)('says what is wrong about %s', (_what, given, isServing, message) => {
    const problems = sharingProblems({ ...right, ...given }, isServing);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(message);
  });
});
