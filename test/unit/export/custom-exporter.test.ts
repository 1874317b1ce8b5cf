import { fileURLToPath } from 'node:url';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { InMemorySpanExporter, SimpleSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  loadExporterModule,
  SpanExporterDestination,
  SpanProcessorExporter,
} from '../../../src/export/custom-exporter.js';
import { ExportBench } from '../../fake/export-bench.js';
import { logRecord, spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { until } from '../../fake/until.js';

const RUN = traceIdOf(1);
const never = new AbortController().signal;

let bench: ExportBench;
beforeEach(async () => {
  bench = await ExportBench.open();
});
afterEach(() => bench.close());

/** An exporter that is no TypeScript may say anything. */
function laterBy(json: string) {
  return (done: (result: ExportResult) => void) => {
    setImmediate(() => done(JSON.parse(json)));
  };
}

async function exportThrough(exporter: SpanExporter) {
  const destination = new SpanExporterDestination('own', exporter, bench.clock);
  const worker = await bench.worker({ name: 'own', destination });
  bench.log.append(RUN, spanEnd(RUN, 1), logRecord(RUN, 1, 'an event'), spanEnd(RUN, 2));
  return worker;
}

describe('a destination that is any SpanExporter', () => {
  it('gives an exporter in memory the spans with their events', async () => {
    const exporter = new InMemorySpanExporter();
    const worker = await exportThrough(exporter);
    expect(await worker.flush(never)).toBe(true);
    const spans = exporter.getFinishedSpans();
    expect(spans.map((span) => span.name)).toEqual(['span 1', 'span 2']);
    expect(spans[0]?.events.map((event) => event.name)).toEqual(['an event']);
    expect(worker.status().signals.logs.state).toBe('off');
  });

  it("gives OpenTelemetry's own OTLP exporter what a receiver then gets", async () => {
    const worker = await exportThrough(new OTLPTraceExporter({ url: `${bench.receiver.url}/v1/traces` }));
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(['span 1', 'span 2']);
    await worker.shutdown(never);
  });

  it('counts as refused what that exporter is refused', async () => {
    bench.receiver.answer = () => ({ status: 400 });
    const worker = await exportThrough(new OTLPTraceExporter({ url: `${bench.receiver.url}/v1/traces` }));
    expect(await worker.flush(never)).toBe(true);
    expect(worker.status().signals.traces).toMatchObject({ sentCount: 0, refusedCount: 2 });
  });

  it('gives a SpanProcessor each span', async () => {
    const exporter = new InMemorySpanExporter();
    const worker = await exportThrough(new SpanProcessorExporter(new SimpleSpanProcessor(exporter)));
    expect(await worker.flush(never)).toBe(true);
    expect(exporter.getFinishedSpans()).toHaveLength(2);
  });

  it.each([
    [
      'reports a failure',
      (done: (result: { code: ExportResultCode }) => void) => done({ code: ExportResultCode.FAILED }),
    ],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['is an async function that fails', () => Promise.reject(new Error('broken'))],
    ['throws what cannot be shown', () => Promise.reject(Object.create(null))],
    ['says later what is no error', laterBy('{ "code": 1, "error": "broken" }')],
    ['says later nothing', laterBy('null')],
  ])('hands a batch over again when the exporter %s', async (_what, fail) => {
    const names: string[] = [];
    let failuresLeft = 3;
    const worker = await exportThrough({
      export(spans, done) {
        failuresLeft -= 1;
        if (failuresLeft >= 0) return fail(done);
        names.push(...spans.map((span) => span.name));
        done({ code: ExportResultCode.SUCCESS });
      },
      shutdown: async () => {},
    });
    await until(() => {
      bench.clock.advance(1_000);
      return names.length === 2;
    });
    expect(worker.status().signals.traces.failedAttemptCount).toBe(3);
  });

  it('does not wait for ever for an exporter that never says how it went', async () => {
    const worker = await exportThrough({ export() {}, shutdown: async () => {} });
    await until(() => {
      bench.clock.advance(1_000);
      return worker.status().lastError === 'no result within 30000 ms';
    });
    await worker.shutdown(AbortSignal.abort());
  });
});

describe('an exporter module', () => {
  const example = fileURLToPath(new URL('../../../docs/examples/custom-exporter.mjs', import.meta.url));

  it('is loaded from the example in the documentation', async () => {
    const worker = await exportThrough(await loadExporterModule(example));
    expect(await worker.flush(never)).toBe(true);
    expect(worker.status().signals.traces.sentCount).toBe(2);
  });

  it('is named when it cannot be loaded or exports something else', async () => {
    await expect(loadExporterModule('/missing.mjs')).rejects.toThrow('the exporter /missing.mjs cannot be loaded');
    const other = fileURLToPath(new URL('../../../vitest.config.ts', import.meta.url));
    await expect(loadExporterModule(other)).rejects.toThrow('no default export that is, or makes');
  });
});
