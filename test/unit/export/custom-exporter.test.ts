import { fileURLToPath } from 'node:url';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createOtlpTraceExporter,
  loadExporterModule,
  SpanExporterDestination,
  SpanProcessorExporter,
} from '../../../src/export/custom-exporter.js';
import { packSpans, unpackSpans } from '../../../src/export/exporter-thread.js';
import { cutRanges } from '../../../src/export/wire/item-window.js';
import { encodedSpans } from '../../fake/encoded-item.js';
import { ExportBench } from '../../fake/export-bench.js';
import { logRecord, spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { untilTurned } from '../../tool/until.js';

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

const TIMEOUT_MS = 30_000;

async function exportThrough(exporter: SpanExporter) {
  const destination = new SpanExporterDestination('own', exporter, bench.clock, TIMEOUT_MS);
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

  it('never gives an exporter more at a time than receivers take in one request', async () => {
    const exporter = new InMemorySpanExporter();
    const destination = new SpanExporterDestination('own', exporter, bench.clock, TIMEOUT_MS);
    const sizes = [900_000, 900_000, 900_000, 5_000_000, 10];
    const made = new InMemorySpanExporter();
    const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(made)] }).getTracer('test');
    for (const [index, size] of sizes.entries()) tracer.startSpan(`${index}`.padEnd(size, 'x')).end();
    const counts: number[] = [];
    for (let ranges = encodedSpans(...made.getFinishedSpans()); ranges.length > 0; ) {
      const outcome = await destination.send({ signal: 'traces', ranges: unpackSpans(packSpans(ranges)) }, never);
      expect(outcome.result.kind).toBe('accepted');
      counts.push(outcome.itemCount);
      ranges = cutRanges(ranges, outcome.itemCount)[1];
    }
    expect(counts).toEqual([2, 1, 1, 1]);
    expect(exporter.getFinishedSpans().map(({ name }) => name[0])).toEqual(['0', '1', '2', '3', '4']);
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
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return names.length === 2;
    });
    expect(worker.status().signals.traces.failedAttemptCount).toBe(3);
  });

  it('does not wait for ever for an exporter that never says how it went', async () => {
    const worker = await exportThrough({ export() {}, shutdown: async () => {} });
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().lastError === 'no result within 30000 ms';
    });
    await worker.shutdown(AbortSignal.abort());
  });
});

describe('the exporter that comes with the program', () => {
  const endpoint = (timeoutMs = TIMEOUT_MS) => ({
    ...{ url: `${bench.receiver.url}/in`, headers: { authorization: 'Bearer own' }, timeoutMs },
    ...({ compression: 'gzip', encoding: 'json', tls: {} } as const),
  });
  const FOR_ANOTHER = {
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=secret',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-traces=secret',
  };
  beforeEach(() => Object.assign(process.env, FOR_ANOTHER));
  afterEach(() => {
    for (const name of Object.keys(FOR_ANOTHER)) delete process.env[name];
  });
  const create = (timeoutMs?: number) => createOtlpTraceExporter(endpoint(timeoutMs), 'run-bridge/test', process.env);

  it('posts spans to the address as it stands, with its own headers and none that the environment has for another', async () => {
    const worker = await exportThrough(await create());
    expect(process.env).toMatchObject(FOR_ANOTHER);
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(['span 1', 'span 2']);
    const [{ headers } = { headers: {} }] = bench.receiver.requests;
    expect(headers).toMatchObject({
      authorization: 'Bearer own',
      'content-encoding': 'gzip',
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^run-bridge\/test OTel-/),
    });
    expect(JSON.stringify(headers)).not.toContain('secret');
  });

  it('has a batch sent again that a receiver fails to take or does not answer in time', async () => {
    const answers = [{ status: 500 }, { isSilent: true }, {}];
    bench.receiver.answer = () => answers.shift() ?? {};
    const worker = await exportThrough(await create(300));
    await untilTurned(() => {
      // Little by little: the batch's own timeout is by this clock, the receiver's silence is by the machine's.
      bench.clock.advance(1);
      return worker.status().signals.traces.sentCount === 2;
    });
    // On a busy machine an answer may come too late by the exporter's own clock, which sends what was taken once more.
    expect(new Set(bench.receiver.spanNames)).toEqual(new Set(['span 1', 'span 2']));
    const { refusedCount, failedAttemptCount } = worker.status().signals.traces;
    expect(refusedCount).toBe(0);
    expect(failedAttemptCount).toBeGreaterThanOrEqual(2);
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
