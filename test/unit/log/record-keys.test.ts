import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { RecordKeys } from '../../../src/log/record-keys.js';
import { ResourceIndex } from '../../../src/log/resource-index.js';
import type { Resource } from '../../../src/record/attributes.js';
import { parseRecordLine } from '../../../src/record/record-line.js';
import { SpanIdTable } from '../../../src/record/span-id-table.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';

/** A log record that is equal to all others but for its event id. */
function log(eventId: string | null, body = 'hello'): TelemetryRecord {
  return parseRecordLine(
    `{"record_type":"LogRecord","trace_id":"${'1'.repeat(32)}","span_id":"${'2'.repeat(16)}","span_name":"a","event_id":${JSON.stringify(eventId)},"time_unix_nano":"7","severity_number":9,"severity_text":"INFO","body":"${body}","event_type":"x","attributes":{}}`,
  );
}

/** Event ids of what is new of a delivery. */
function deliver(keys: RecordKeys, ...eventIds: (string | null)[]): (string | null)[] {
  const occurrences = new SpanIdTable();
  return eventIds.filter((eventId) => keys.add(log(eventId), occurrences));
}

/** The keys of a log that holds these. */
function learned(...eventIds: (string | null)[]): RecordKeys {
  const keys = new RecordKeys();
  for (const eventId of eventIds) keys.learn(log(eventId));
  return keys;
}

let keys: RecordKeys;
beforeEach(() => {
  keys = new RecordKeys();
});

describe('equal log records', () => {
  test('are distinguished by their event ids, whatever delivery they come in', () => {
    expect(deliver(keys, 'a')).toEqual(['a']);
    expect(deliver(keys, 'b')).toEqual(['b']);
    expect(deliver(keys, 'c', 'b', 'a', 'd')).toEqual(['c', 'd']);
  });

  test('are one record where they have one event id, also within a delivery', () => {
    expect(deliver(keys, 'a', 'a')).toEqual(['a']);
    expect(deliver(keys, 'a', 'a')).toEqual([]);
  });

  test('without event ids are distinguished by their position in the delivery', () => {
    expect(deliver(keys, null)).toHaveLength(1);
    expect(deliver(keys, null, null)).toHaveLength(1);
    expect(deliver(keys, null, null)).toHaveLength(0);
  });

  test('that came with event ids are known when they come without', () => {
    deliver(keys, 'a');
    deliver(keys, 'b');
    expect(deliver(keys, null, null)).toHaveLength(0);
    expect(deliver(keys, null, null, null)).toHaveLength(1);
  });

  test('that came without event ids are known when they come with them, each once', () => {
    deliver(keys, null, null);
    expect(deliver(keys, 'a')).toEqual([]);
    expect(deliver(keys, 'b', 'a', 'c')).toEqual(['c']);
    expect(deliver(keys, null, null, null)).toHaveLength(0);
  });

  test('are known again after the log was read', () => {
    keys = learned('a', null, 'b');
    expect(deliver(keys, 'b', 'a', null, null, null)).toEqual([]);
    expect(deliver(keys, 'c', 'd')).toEqual(['d']);
  });

  test('are as many as came at most, in whatever order and however often they come, also after the log was read', () => {
    const ids = fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1 });
    const namelessly = fc.nat(4).map((count) => new Array<null>(count).fill(null));
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.oneof(ids, namelessly), fc.boolean())), (deliveries) => {
        let written: (string | null)[] = [];
        let tried = new RecordKeys();
        for (const [delivery, isRead] of deliveries) {
          written = [...written, ...deliver(tried, ...delivery)];
          expect(deliver(tried, ...delivery)).toEqual([]);
          if (isRead) tried = learned(...written);
        }
        const named = new Set(deliveries.flatMap(([delivery]) => delivery.filter((id) => id !== null)));
        const most = Math.max(0, named.size, ...deliveries.map(([delivery]) => delivery.length));
        if (!deliveries.some(([, isRead]) => isRead)) expect(written).toHaveLength(most);
        else expect(written.length).toBeLessThanOrEqual(named.size + most);
      }),
    );
  });
});

test('one event id on records that are not equal says nothing', () => {
  const occurrences = new SpanIdTable();
  expect(keys.add(log('a', 'one'), occurrences)).toBe(true);
  expect(keys.add(log('a', 'two'), occurrences)).toBe(true);
});

test('of very many equal ones, all are kept', () => {
  const count = 70_000;
  const occurrences = new SpanIdTable();
  let addedCount = 0;
  for (let n = 0; n < count; n++) if (keys.add(log(null), occurrences)) addedCount += 1;
  expect(addedCount).toBe(count);
});

describe('the resources of a log', () => {
  const resourceOf = (name: string): Resource => ({
    attributes: { 'service.name': name },
    scope: { name: 'dbt', version: '2.0' },
  });

  test('are those of the records that were written, also where a crash left an entry beyond the end of the log', () => {
    const [first, second] = [resourceOf('first'), resourceOf('second')];
    const before = new ResourceIndex();
    // The records of the second one, from 500 on, were lost.
    const lines = before.switchTo(first, 0) + before.switchTo(second, 500);
    for (const [next, other] of [
      [second, first],
      [first, second],
    ] as const) {
      const index = ResourceIndex.parse(lines);
      const all = lines + index.switchTo(next, 400) + index.switchTo(other, 600);
      const names = [399, 400, 550, 600].map(
        (offset) => ResourceIndex.parse(all).at(offset).attributes['service.name'],
      );
      const [nextName, otherName] = [next, other].map(({ attributes }) => attributes['service.name']);
      expect(names).toEqual(['first', nextName, nextName, otherName]);
    }
  });
});
