import { describe, expect, it } from 'vitest';
import { sharingProblems } from '../../../src/cluster/sharing-problems.js';

const right = {
  processes: 'several',
  role: 'all',
  'database-url': 'postgresql://db/run_bridge',
  artifacts: { bucket: 'runs', prefix: '', endpoint: null, region: null, isPathStyle: null },
  webhookKey: new Uint8Array(32),
  journal: {
    ...{ brokers: ['kafka:9092'], tls: null, sasl: null, groupId: 'run-bridge' },
    topics: { traces: 'otlp_spans', logs: 'otlp_logs' },
  },
} as const;

describe('a configuration for one process', () => {
  const alone = { ...right, processes: 'one', 'database-url': 'off', artifacts: 'folder', journal: null } as const;

  it('needs nothing of what several share', () => {
    expect(sharingProblems(alone, true)).toEqual([]);
    expect(sharingProblems(alone, false)).toEqual([]);
  });

  it.each(['build', 'web'] as const)('does not do for --role %s, and all that is missing is said at once', (role) => {
    const [first, ...others] = sharingProblems({ ...alone, role }, true);
    expect(first).toBe(
      `role: ${role} is a part of what several processes do: set processes to several, or role to all`,
    );
    expect(others).toHaveLength(3);
    expect(sharingProblems({ ...right, processes: 'one', role }, true)).toEqual([first]);
    // Other commands have no role, whatever their file says.
    expect(sharingProblems({ ...alone, role }, false)).toEqual([]);
  });
});

describe('a configuration for several processes', () => {
  it.each(['build', 'web'] as const)('may have --role %s', (role) => {
    expect(sharingProblems({ ...right, role }, true)).toEqual([]);
  });

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
