import { type Attributes, SpanKind, TraceFlags } from '@opentelemetry/api';
import { ProtobufLogsSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExportGroup, SCHEMA_URL } from '../../../../src/export/wire/export-group.js';
import { RequestEncoder } from '../../../../src/export/wire/export-request.js';
import { type ItemRange, WindowWriter } from '../../../../src/export/wire/item-window.js';
import { DecodedSpan, decodeLog } from '../../../../src/export/wire/wire-reader.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../../../src/record/record-batch.js';
import { addLog, addSpan } from '../../../fake/encoded-item.js';

const RESOURCES = [
  { 'service.name': 'dbt-core', 'process.pid': 4242 },
  { 'service.name': 'dbt', tags: ['a', 'ü'] },
].map((attributes) => resourceFromAttributes(attributes, { schemaUrl: SCHEMA_URL }));
const SCOPES = [{ name: 'dbt-core', version: '2' }, { name: 'run-bridge' }];
const GROUPS = RESOURCES.flatMap((resource) =>
  SCOPES.map((scope) => ({ resource, group: new ExportGroup(resource.attributes, scope) })),
);

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
  .map(
    ({
      context: own,
      parent,
      group: {
        resource,
        group: { scope },
      },
      ...rest
    }) => ({
      ...rest,
      ...(parent === null ? {} : { parentSpanContext: { ...parent, traceId: own.traceId } }),
      spanContext: () => own,
      duration: [0, 0],
      ended: true,
      resource,
      instrumentationScope: scope,
      droppedAttributesCount: 0,
      droppedLinksCount: 0,
    }),
  );

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
  .map(
    ({
      spanContext,
      group: {
        resource,
        group: { scope },
      },
      ...rest
    }) => ({
      ...rest,
      ...(spanContext === null ? {} : { spanContext }),
      resource,
      instrumentationScope: scope,
      droppedAttributesCount: 0,
    }),
  );

const bytesOf = (body: Uint8Array | undefined) => Buffer.from(body ?? []).toString('hex');

const CODECS = { json: new JsonCodec(), protobuf: new ProtobufCodec() };
const encoder = new RequestEncoder('protobuf', async () => CODECS, Infinity);
const encode = (signal: Signal, ranges: readonly ItemRange[]) => encoder.encode({ signal, ranges });

describe('the protobuf writer', () => {
  it('writes spans to the byte as OpenTelemetry does', () =>
    fc.assert(
      fc.asyncProperty(fc.array(span, { minLength: 1, maxLength: 6 }), async (items) => {
        const windows = new WindowWriter(20_000);
        for (const item of items) addSpan(windows, item, 0, groupOf(item));
        const { body, itemCount } = await encode('traces', windows.take().traces);
        expect(itemCount).toBe(items.length);
        expect(bytesOf(body)).toBe(bytesOf(ProtobufTraceSerializer.serializeRequest(items)));
      }),
      { numRuns: 60 },
    ));

  it('writes log records to the byte as OpenTelemetry does', () =>
    fc.assert(
      fc.asyncProperty(fc.array(log, { minLength: 1, maxLength: 6 }), async (items) => {
        const windows = new WindowWriter(20_000);
        for (const item of items) addLog(windows, item, 0, groupOf(item));
        const { body } = await encode('logs', windows.take().logs);
        expect(bytesOf(body)).toBe(bytesOf(ProtobufLogsSerializer.serializeRequest(items)));
      }),
      { numRuns: 60 },
    ));

  it('makes one request of items of several runs and blocks, between which log records stand', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(span, fc.boolean(), fc.option(log)), { minLength: 1, maxLength: 6 }),
        async (triples) => {
          const runs = [new WindowWriter(4096), new WindowWriter(20_000)] as const;
          const ranges = triples.flatMap(([item, isFirst, between]) => {
            const windows = runs[isFirst ? 0 : 1];
            addSpan(windows, item, 0, groupOf(item));
            if (between !== null) addLog(windows, between, 0, groupOf(between));
            return windows.take().traces;
          });
          const { body } = await encode('traces', ranges);
          const whole = ProtobufTraceSerializer.serializeRequest(triples.map(([item]) => item));
          expect(bytesOf(body)).toBe(bytesOf(whole));
        },
      ),
      { numRuns: 40 },
    ));

  it('writes over what was begun and not added', () => {
    const [kept, dropped] = fc.sample(span, 2);
    if (kept === undefined || dropped === undefined) throw new Error('no samples');
    const windows = new WindowWriter();
    addSpan(windows, kept);
    windows.begin().text('half of a span');
    addSpan(windows, dropped);
    const alone = new WindowWriter();
    addSpan(alone, kept);
    addSpan(alone, dropped);
    const bytes = ({ window, from, to }: ItemRange) =>
      window.block.out.bytes.subarray(window.startOf(from), window.endOf(to - 1));
    expect(windows.take().traces.map(bytes)).toEqual(alone.take().traces.map(bytes));
  });
});

describe('an encoded item', () => {
  it('is the same span to an exporter that wants objects', () => {
    fc.assert(
      fc.property(span, (item) => {
        const encoded = decodedSpan(item);
        expect(encoded.spanContext()).toEqual(item.spanContext());
        // Through OpenTelemetry's serialiser: it reads every property.
        expect(bytesOf(ProtobufTraceSerializer.serializeRequest([encoded]))).toBe(
          bytesOf(ProtobufTraceSerializer.serializeRequest([item])),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('says all of its log record', () => {
    fc.assert(
      fc.property(log, (item) => {
        const windows = new WindowWriter();
        addLog(windows, item);
        const [range] = windows.take().logs;
        const {
          spanContext,
          body,
          traceId: _traceId,
          ...said
        } = decodeLog(range?.window.messageOf(0) ?? Buffer.alloc(0));
        const shared = { resource: item.resource, instrumentationScope: item.instrumentationScope };
        const context = spanContext === undefined ? {} : { spanContext };
        const record = { ...said, ...context, ...shared, body: body ?? '', droppedAttributesCount: 0 };
        expect(bytesOf(ProtobufLogsSerializer.serializeRequest([record]))).toBe(
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
      return decodedSpan({ ...item, startTime, endTime }).duration;
    };
    expect(durationOf([5, 900_000_000], [7, 100_000_000])).toEqual([1, 200_000_000]);
    expect(durationOf([5, 1], [5, 4])).toEqual([0, 3]);
    expect(durationOf([7, 1], [5, 4])).toEqual([0, 0]);
    expect(durationOf([5, 4], [5, 1])).toEqual([0, 0]);
  });
});

function decodedSpan(span: ReadableSpan): DecodedSpan {
  const windows = new WindowWriter();
  addSpan(windows, span);
  const [range] = windows.take().traces;
  if (range === undefined) throw new Error('nothing was written');
  return new DecodedSpan(range.window.messageOf(0), range.window.group);
}

function groupOf({ resource, instrumentationScope }: ReadableSpan | ReadableLogRecord): ExportGroup {
  const found = GROUPS.find((one) => one.resource === resource && one.group.scope === instrumentationScope);
  if (found === undefined) throw new Error('an item of no group');
  return found.group;
}
