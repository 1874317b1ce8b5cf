import { describe, expect, it } from 'vitest';
import { systemMachine } from '../../../../src/core/guard.js';
import { SpanIdMap } from '../../../../src/export/mapping/span-tree.js';

const SEED = 7;
const ids = (map: SpanIdMap<string>) => Array.from(map, ([[high, low], value]) => `${high}-${low} ${value}`);

describe('a map by span id', () => {
  it('keeps what was added, in that order, and loses the oldest when there are too many', () => {
    const map = new SpanIdMap<string>(3, SEED);
    for (const low of [1, 2, 3, 4]) map.add(0, low, `v${low}`);
    expect(ids(map)).toEqual(['0-2 v2', '0-3 v3', '0-4 v4']);
    map.delete(0, 3);
    map.delete(0, 9);
    expect([map.size, map.get(0, 3), map.get(0, 4)]).toEqual([2, undefined, 'v4']);
    map.add(0, 5, 'v5');
    map.add(0, 6, 'v6');
    expect(ids(map)).toEqual(['0-4 v4', '0-5 v5', '0-6 v6']);
    for (const low of [4, 5, 6]) map.delete(0, low);
    expect([map.size, ...ids(map)]).toEqual([0]);
  });

  it('tells ids apart that have the same hash', () => {
    // Any low half with the other high halves that make up for it.
    const map = new SpanIdMap<string>(4, 0);
    const meeting = [1, 2, 3, 4, 5].map((high) => [high, Math.imul(high, 0x9e3779b1)] as const);
    for (const [high, low] of meeting) map.add(high, low, `v${high}`);
    expect(meeting.map(([high, low]) => map.get(high, low))).toEqual([undefined, 'v2', 'v3', 'v4', 'v5']);
    map.delete(3, Math.imul(3, 0x9e3779b1));
    expect(meeting.map(([high, low]) => map.get(high, low))).toEqual([undefined, 'v2', undefined, 'v4', 'v5']);
  });

  it('takes no more memory for ids that came and went', () => {
    const map = new SpanIdMap<string>(1_000, SEED);
    const churn = (from: number) => {
      for (let low = from; low < from + 400_000; low++) {
        map.add(low, low, '');
        map.delete(low - 10, low - 10);
      }
      systemMachine.collectGarbage();
      return systemMachine.objectBytes();
    };
    const before = churn(0);
    expect(churn(400_000) - before).toBeLessThan(2 * 1024 * 1024);
    expect(map.size).toBe(10);
  });
});
