import { describe, expect, test } from 'vitest';
import { rangeAssignor } from '../../../src/cluster/kafka/range-assignor.js';

/** Assigns partitions to members. @param counts partitions of each topic */
function assign(members: Readonly<Record<string, readonly string[]>>, counts: Readonly<Record<string, number>>) {
  const subscriptions = new Map(
    Object.entries(members).map(([memberId, topics]) => [memberId, { memberId, version: 1, topics: [...topics] }]),
  );
  const topics = new Map(
    Object.entries(counts).map(([id, partitionsCount]) => [id, { id, partitions: [], partitionsCount, lastUpdate: 0 }]),
  );
  const metadata = { id: '', brokers: new Map(), controllerId: 1, topics, lastUpdate: 0 };
  const assigned = rangeAssignor('a', subscriptions, new Set(Object.keys(counts)), metadata);
  return Object.fromEntries(
    assigned.map(({ memberId, assignments }) => [
      memberId,
      Object.fromEntries([...assignments].map(([topic, { partitions }]) => [topic, partitions])),
    ]),
  );
}

const BOTH = ['otlp_spans', 'otlp_logs'];

describe('the range assignor', () => {
  test('gives the same partitions of each topic to one member, in ranges, the first members one more', () => {
    expect(assign({ c: BOTH, a: BOTH, b: BOTH }, { otlp_spans: 8, otlp_logs: 8 })).toEqual({
      a: { otlp_spans: [0, 1, 2], otlp_logs: [0, 1, 2] },
      b: { otlp_spans: [3, 4, 5], otlp_logs: [3, 4, 5] },
      c: { otlp_spans: [6, 7], otlp_logs: [6, 7] },
    });
  });

  test('gives members of which there are too many nothing, and each topic to those alone that read it', () => {
    expect(assign({ a: BOTH, b: BOTH, c: ['otlp_logs'] }, { otlp_spans: 1, otlp_logs: 2 })).toEqual({
      a: { otlp_spans: [0], otlp_logs: [0] },
      b: { otlp_logs: [1] },
      c: {},
    });
  });
});
