import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import { BasicTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConsumeError } from '../../../../src/record/record-batch.js';
import { GrpcBench } from '../../../fake/grpc-bench.js';

let bench: GrpcBench;
beforeEach(async () => {
  bench = await GrpcBench.start();
});
afterEach(() => bench.stop());

type ExporterConfig = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;
// The package exports no name for this value.
const GZIP = { compression: 'gzip' } as ExporterConfig;
const url = () => `http://127.0.0.1:${bench.port}`;

async function exportSpan(config: ExporterConfig): Promise<void> {
  const exporter = new OTLPTraceExporter({ url: url(), ...config });
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.getTracer('test').startSpan('from the SDK').end();
  await provider.shutdown();
}

async function exportLog(config: ExporterConfig): Promise<void> {
  const exporter = new OTLPLogExporter({ url: url(), ...config });
  const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter })] });
  const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
  const context = trace.setSpanContext(ROOT_CONTEXT, span);
  provider.getLogger('test').emit({ body: 'from the SDK', context });
  await provider.shutdown();
}

function received(): string[] {
  return bench.consumer.deliveries.flatMap(({ passthrough }) => passthrough.map(({ body }) => body));
}

test.each([
  ['plain', {}],
  ['gzip', GZIP],
])("OpenTelemetry's own exporter of spans is understood, %s", async (_name, config) => {
  await exportSpan(config);
  expect(received()).toEqual([expect.stringContaining('"name":"from the SDK"')]);
});

test.each([
  ['plain', {}],
  ['gzip', GZIP],
])("OpenTelemetry's own exporter of log records is understood, %s", async (_name, config) => {
  await exportLog(config);
  expect(received()).toEqual([expect.stringContaining('"stringValue":"from the SDK"')]);
});

test('one that finds no room is answered UNAVAILABLE', async () => {
  bench.consumer.failWith(new ConsumeError('unavailable', 'The disk is full.', 1_000));
  const exporter = new OTLPTraceExporter({ url: url() });
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const span = provider.getTracer('test').startSpan('from the SDK');
  const error = await new Promise((resolve) => {
    if (isReadable(span)) exporter.export([span], (result) => resolve(result.error));
  });
  expect(error).toMatchObject({ code: 14, details: 'The disk is full.' });
  await exporter.shutdown();
});

function isReadable(span: object): span is ReadableSpan {
  return 'resource' in span;
}
