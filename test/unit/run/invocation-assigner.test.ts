import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { Attributes, type Resource, UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { parseSpanId, parseTraceId, type SpanId, type TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { InvocationAssigner } from '../../../src/run/invocation-assigner.js';
import { fromOtlp } from './logged-samples.js';

const traceId = must(parseTraceId('a'.repeat(32)));

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('no value');
  return value;
}

function id(number: number): SpanId {
  return must(parseSpanId(number.toString(16).padStart(16, '0')));
}

interface SpanSketch {
  readonly id: number;
  readonly parent?: number;
  readonly start?: number;
  readonly end?: number;
  readonly type?: string;
}

let offset = 0;

function logged(record: TelemetryRecord, resource: Resource = UNKNOWN_RESOURCE): LoggedRecord {
  offset += 1;
  return { record, resource, offset, endOffset: offset + 1 };
}

function span({ id: spanId, parent, start = 0, end = 1, type = 'query.QueryExecuted' }: SpanSketch): LoggedRecord {
  return logged({
    recordType: 'SpanEnd',
    traceId,
    spanId: id(spanId),
    spanName: 'span',
    parentSpanId: parent === undefined ? null : id(parent),
    links: null,
    startTimeUnixNano: BigInt(start) * 1_000_000_000n,
    endTimeUnixNano: BigInt(end) * 1_000_000_000n,
    severityNumber: 9,
    severityText: 'INFO',
    status: null,
    eventType: `v1.public.events.fusion.${type}`,
    attributes: Attributes.EMPTY,
  });
}

function log(second: number, resource?: Resource): LoggedRecord {
  return logged(
    {
      recordType: 'LogRecord',
      traceId,
      spanId: null,
      spanName: null,
      eventId: null,
      timeUnixNano: BigInt(second) * 1_000_000_000n,
      severityNumber: 9,
      severityText: 'INFO',
      body: '',
      eventType: 'v1.public.events.fusion.log.LogMessage',
      attributes: Attributes.EMPTY,
    },
    resource,
  );
}

function assigned(records: readonly LoggedRecord[], maxSpans?: number): InvocationAssigner {
  const assigner = new InvocationAssigner(maxSpans);
  for (const record of records) assigner.add(record, 0);
  return assigner;
}

const invocation = (number: number, start: number, end: number) =>
  span({ id: number, parent: 99, start, end, type: 'invocation.Invocation' });
const process = (number: number, start: number, end: number) =>
  span({ id: number, parent: 99, start, end, type: 'process.Process' });

describe('process spans', () => {
  it('go to the invocation that they enclose, also where one encloses both', () => {
    const { invocations } = assigned([invocation(1, 1, 9), invocation(2, 3, 5), process(11, 0, 10), process(12, 2, 6)]);
    expect(invocations.map((parts) => [parts.spanId, parts.process?.spanId, parts.isAmbiguous])).toEqual([
      [id(1), id(11), false],
      [id(2), id(12), false],
    ]);
  });

  it('that could be swapped mark both invocations ambiguous', () => {
    const { invocations } = assigned([invocation(1, 3, 6), invocation(2, 4, 5), process(11, 1, 9), process(12, 2, 8)]);
    expect(invocations.map((parts) => parts.isAmbiguous)).toEqual([true, true]);
    expect(new Set(invocations.map((parts) => parts.process?.spanId)).size).toBe(2);
  });

  it('of which nothing else came are invocations of their own', () => {
    const { invocations } = assigned([process(11, 0, 10)]);
    expect(invocations.map((parts) => [parts.spanId, parts.process?.spanId])).toEqual([[null, id(11)]]);
  });
});

describe('log records without a span', () => {
  const other: Resource = { attributes: { 'service.name': 'dbt-fusion' }, scope: { name: 'dbt-fusion', version: '2' } };

  it('go to the only invocation', () => {
    const record = log(500);
    expect(assigned([invocation(1, 1, 9), record]).invocationIndexOf(record)).toBe(1);
  });

  it('go by the resource, then by the time, else are ambiguous', () => {
    const [early, late, both, fusion] = [log(2), log(8), log(5), log(5, other)];
    const spans = [invocation(1, 1, 6), invocation(2, 4, 9), { ...invocation(3, 1, 9), resource: other }];
    const clear = assigned([...spans, early, late, fusion]);
    expect([early, late, fusion].map((record) => clear.invocationIndexOf(record))).toEqual([1, 2, 3]);
    expect(clear.invocations.some((parts) => parts.isAmbiguous)).toBe(false);
    const unclear = assigned([...spans, both]);
    expect(unclear.invocationIndexOf(both)).toBeDefined();
    expect(unclear.invocations.map((parts) => parts.isAmbiguous)).toEqual([true, true, false]);
  });
});

it('does not mix two commands by the outer span that both name as parent', () => {
  const records = [
    span({ id: 21, parent: 1, type: 'node.NodeProcessed' }),
    span({ id: 22, parent: 2, type: 'node.NodeProcessed' }),
    invocation(2, 0, 9),
    invocation(1, 0, 9),
  ];
  expect(assigned(records).invocations.map((parts) => parts.spanId)).toEqual([id(1), id(2)]);
});

it('gives every record an invocation, whatever the parents claim', () => {
  const sketch = fc.record({
    id: fc.integer({ min: 1, max: 12 }),
    parent: fc.integer({ min: 1, max: 12 }),
    start: fc.integer({ min: 0, max: 9 }),
    type: fc.constantFrom(
      'invocation.Invocation',
      'process.Process',
      'node.NodeProcessed',
      'node.NodeEvaluated',
      'a.B',
    ),
  });
  fc.assert(
    fc.property(fc.array(sketch, { minLength: 1, maxLength: 30 }), (sketches) => {
      const records = sketches.map(span);
      const assigner = assigned(records);
      for (const record of records) {
        const index = assigner.invocationIndexOf(record);
        expect(index).toBeGreaterThanOrEqual(1);
        expect(index).toBeLessThanOrEqual(assigner.invocations.length);
      }
    }),
  );
});

it('goes on by the parents of spans beyond its bound, and loses no record', () => {
  const records = fromOtlp('build-clean');
  const assigner = assigned(records, 40);
  const counted = assigner.invocations
    .flatMap((parts) => parts.groups)
    .reduce((sum, group) => sum + group.recordCount, 0);
  expect(counted).toBe(records.length);
  expect(records.every((record) => assigner.invocationIndexOf(record) !== undefined)).toBe(true);
});
