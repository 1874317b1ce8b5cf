import { type Attributes, SpanKind, TraceFlags } from '@opentelemetry/api';
import { ProtobufLogsSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OtlpEncoder } from '../../../../src/export/otlp-destination.js';
import { ExportGroup, ItemEncoder } from '../../../../src/export/wire/encoded-items.js';
import { encodedLog, encodedSpan } from '../../../fake/encoded-item.js';

const RESOURCES = [
  resourceFromAttributes({ 'service.name': 'dbt-core', 'process.pid': 4242 }),
  resourceFromAttributes({ 'service.name': 'dbt', tags: ['a', 'ü'] }),
];
const SCOPES = [{ name: 'dbt-core', version: '2' }, { name: 'run-bridge' }];
const GROUPS = RESOURCES.flatMap((resource) => SCOPES.map((scope) => new ExportGroup(resource, scope)));

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary', maxLength: 300 }), fc.constant('x'.repeat(3000)));
const number = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.double({ noNaN: true }), fc.constant(-(2 ** 63)));
const value = fc.oneof(
  text,
  number,
  fc.boolean(),
  fc.array(text, { maxLength: 3 }),
  fc.array(number, { maxLength: 3 }),
);
const attributes: fc.Arbitrary<Attributes> = fc.dictionary(text, value, { maxKeys: 8 });
const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
const context = fc.record({ traceId: hex(32), spanId: hex(16), traceFlags: fc.constant(TraceFlags.SAMPLED) });
const time = fc.tuple(fc.integer({ min: 0, max: 9_223_372_035 }), fc.integer({ min: 0, max: 999_999_999 }));
const group = fc.constantFrom(...GROUPS);

const span: fc.Arbitrary<ReadableSpan> = fc
  .record({
    context,
    parent: fc.option(context),
    name: text,
    kind: fc.constantFrom(SpanKind.INTERNAL, SpanKind.CLIENT),
    startTime: time,
    endTime: time,
    status: fc.oneof(
      fc.constant({ code: 1 }),
      text.map((message) => ({ code: 2, message: `!${message}` })),
    ),
    attributes,
    links: fc.array(fc.record({ context, attributes }), { maxLength: 2 }),
    events: fc.array(fc.record({ name: text, time, attributes, droppedAttributesCount: fc.constant(0) }), {
      maxLength: 3,
    }),
    droppedEventsCount: fc.nat(),
    group,
  })
  .map(({ context: own, parent, group: { resource, scope }, ...rest }) => ({
    ...rest,
    ...(parent === null ? {} : { parentSpanContext: { ...parent, traceId: own.traceId } }),
    spanContext: () => own,
    duration: [0, 0],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedLinksCount: 0,
  }));

const log: fc.Arbitrary<ReadableLogRecord> = fc
  .record({
    spanContext: fc.option(context),
    hrTime: time,
    hrTimeObserved: time,
    severityNumber: fc.integer({ min: 0, max: 24 }),
    severityText: text,
    body: text,
    eventName: text,
    attributes,
    group,
  })
  .map(({ spanContext, group: { resource, scope }, ...rest }) => ({
    ...rest,
    ...(spanContext === null ? {} : { spanContext }),
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
  }));

const bytesOf = (body: Uint8Array | undefined) => Buffer.from(body ?? []).toString('hex');

describe('the protobuf writer', () => {
  it('writes spans to the byte as OpenTelemetry does', () => {
    fc.assert(
      fc.property(fc.array(span, { minLength: 1, maxLength: 6 }), (items) => {
        const encoder = new ItemEncoder(4096);
        const encoded = items.map((item) => encodedSpan(item, encoder, groupOf(item)));
        const { body, itemCount } = new OtlpEncoder('protobuf').encode({ signal: 'traces', items: encoded });
        expect(itemCount).toBe(items.length);
        expect(bytesOf(body)).toBe(bytesOf(ProtobufTraceSerializer.serializeRequest(items)));
      }),
      { numRuns: 60 },
    );
  });

  it('writes log records to the byte as OpenTelemetry does', () => {
    fc.assert(
      fc.property(fc.array(log, { minLength: 1, maxLength: 6 }), (items) => {
        const encoder = new ItemEncoder(4096);
        const encoded = items.map((item) => encodedLog(item, encoder, groupOf(item)));
        const { body } = new OtlpEncoder('protobuf').encode({ signal: 'logs', items: encoded });
        expect(bytesOf(body)).toBe(bytesOf(ProtobufLogsSerializer.serializeRequest(items)));
      }),
      { numRuns: 60 },
    );
  });

  it('makes one request of items of several blocks', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(span, fc.boolean()), { minLength: 1, maxLength: 6 }), (pairs) => {
        const one = new ItemEncoder(4096);
        const other = new ItemEncoder(4096);
        const items = pairs.map(([item, isOne]) => encodedSpan(item, isOne ? one : other, groupOf(item)));
        const { body } = new OtlpEncoder('protobuf').encode({ signal: 'traces', items });
        const whole = ProtobufTraceSerializer.serializeRequest(pairs.map(([item]) => item));
        expect(bytesOf(body)).toBe(bytesOf(whole));
      }),
      { numRuns: 40 },
    );
  });
});

describe('an encoded item', () => {
  it('is the same span to an exporter that wants objects', () => {
    fc.assert(
      fc.property(span, (item) => {
        const encoded = encodedSpan(item);
        expect(encoded.spanContext()).toEqual(item.spanContext());
        // Through OpenTelemetry's serialiser: it reads every property.
        expect(bytesOf(ProtobufTraceSerializer.serializeRequest([encoded]))).toBe(
          bytesOf(ProtobufTraceSerializer.serializeRequest([item])),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('is the same log record to an exporter that wants objects', () => {
    fc.assert(
      fc.property(log, (item) => {
        const encoded = encodedLog(item);
        expect(bytesOf(ProtobufLogsSerializer.serializeRequest([encoded]))).toBe(
          bytesOf(ProtobufLogsSerializer.serializeRequest([item])),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('knows how long a span took, and that no span takes less than nothing', () => {
    const durationOf = (startTime: [number, number], endTime: [number, number]) => {
      const [item] = fc.sample(span, 1);
      if (item === undefined) throw new Error('no sample');
      return encodedSpan({ ...item, startTime, endTime }).duration;
    };
    expect(durationOf([5, 900_000_000], [7, 100_000_000])).toEqual([1, 200_000_000]);
    expect(durationOf([5, 1], [5, 4])).toEqual([0, 3]);
    expect(durationOf([7, 1], [5, 4])).toEqual([0, 0]);
    expect(durationOf([5, 4], [5, 1])).toEqual([0, 0]);
  });
});

function groupOf({ resource, instrumentationScope }: ReadableSpan | ReadableLogRecord): ExportGroup {
  const found = GROUPS.find((one) => one.resource === resource && one.scope === instrumentationScope);
  if (found === undefined) throw new Error('an item of no group');
  return found;
}
