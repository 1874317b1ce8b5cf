import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ReceiverBench } from '../../fake/receiver-bench.js';

let bench: ReceiverBench;
beforeEach(async () => {
  bench = await ReceiverBench.start();
});
afterEach(() => bench.stop());

type ExporterConfig = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;

async function exportSpan(config: ExporterConfig): Promise<void> {
  const exporter = new OTLPTraceExporter({ url: `http://127.0.0.1:${bench.port}/v1/traces`, ...config });
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.getTracer('test').startSpan('from the SDK').end();
  await provider.shutdown();
}

function receivedNames(): string[] {
  return bench.consumer.deliveries.map((delivery) => {
    const request = JSON.parse(delivery.passthrough[0]?.body ?? '{}');
    return request.resourceSpans[0].scopeSpans[0].spans[0].name;
  });
}

test("OpenTelemetry's own exporter is understood", async () => {
  await exportSpan({});
  expect(receivedNames()).toEqual(['from the SDK']);
});

test("OpenTelemetry's own exporter is understood when it compresses", async () => {
  // The package exports no name for this value.
  await exportSpan({ compression: 'gzip' } as ExporterConfig);
  expect(receivedNames()).toEqual(['from the SDK']);
});
