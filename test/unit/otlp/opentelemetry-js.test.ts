import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { JsonTraceSerializer, ProtobufLogsSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, it } from 'vitest';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';

const protobuf = new ProtobufCodec();
const json = new JsonCodec();

describe('the codecs and opentelemetry-js', () => {
  it('read the same from what it writes in protobuf and in JSON', () => {
    const spans = finishedSpans();
    const fromProtobuf = protobuf.decode('traces', ProtobufTraceSerializer.serializeRequest(spans) ?? new Uint8Array());
    const fromJson = json.decode('traces', JsonTraceSerializer.serializeRequest(spans) ?? new Uint8Array());
    expect(fromJson).toEqual(fromProtobuf);
    if (fromProtobuf.signal !== 'traces') throw new Error('not traces');
    const [group] = fromProtobuf.resources;
    expect(group?.resource.attributes).toContainEqual({ key: 'service.name', value: 'shop' });
    const [child, parent] = group?.scopes[0]?.records ?? [];
    expect(child).toMatchObject({
      parentSpanId: parent?.spanId,
      traceId: parent?.traceId,
      name: 'child',
      kind: 3,
      startTimeUnixNano: 1_700_000_000_123_456_789n,
      status: { code: 2, message: 'no' },
      events: [{ name: 'once', attributes: [{ key: 'count', value: 3n }] }],
      links: [{ spanId: parent?.spanId }],
      attributes: [
        { key: 'text', value: 'ä' },
        { key: 'ratio', value: 0.5 },
        { key: 'ok', value: true },
        { key: 'list', value: ['a', 'b'] },
      ],
    });
  });

  it('write answers that it reads', () => {
    expect(ProtobufTraceSerializer.deserializeResponse(protobuf.encodeResponse('traces', 2, 'no'))).toMatchObject({
      partialSuccess: { rejectedSpans: 2, errorMessage: 'no' },
    });
    expect(ProtobufLogsSerializer.deserializeResponse(protobuf.encodeResponse('logs', 2, 'no'))).toMatchObject({
      partialSuccess: { rejectedLogRecords: 2, errorMessage: 'no' },
    });
    expect(JsonTraceSerializer.deserializeResponse(json.encodeResponse('traces', 0, ''))).toEqual({});
  });
});

function finishedSpans() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop' }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('test', '1');
  const parent = tracer.startSpan('parent');
  const child = tracer.startSpan(
    'child',
    {
      kind: SpanKind.CLIENT,
      startTime: [1_700_000_000, 123_456_789],
      attributes: { text: 'ä', ratio: 0.5, ok: true, list: ['a', 'b'] },
      links: [{ context: parent.spanContext() }],
    },
    trace.setSpan(context.active(), parent),
  );
  child.addEvent('once', { count: 3 });
  child.setStatus({ code: SpanStatusCode.ERROR, message: 'no' });
  child.end([1_700_000_001, 0]);
  parent.end();
  return exporter.getFinishedSpans();
}
