import { workerData } from 'node:worker_threads';
import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { systemClock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { systemMachine } from '../core/guard.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import { connectToStarter } from '../core/thread.js';
import { createOtlpTraceExporter, loadExporterModule, SpanExporterDestination } from './custom-exporter.js';
import { secretMask, secretsOf } from './destination.js';
import type { ExporterCalls, ExporterSetup, ExporterStarterCalls } from './exporter-thread.js';
import { unpackSpans } from './exporter-thread.js';

/** The longest report of an exporter that is logged, in characters. */
const MAX_REPORT_LENGTH = 1_000;

/** Passes on what OpenTelemetry's exporters report beside their results, partial successes for example. */
function reportTo(log: (level: keyof Logger, report: string, message: string) => void): DiagLogger {
  const textOf = (parts: readonly unknown[]) => parts.map(reasonOf).join(' ').slice(0, MAX_REPORT_LENGTH);
  const ignore = () => {};
  return {
    error: (...parts) => log('error', textOf(parts), 'an OpenTelemetry exporter reported an error'),
    warn: (...parts) => log('warn', textOf(parts), 'an OpenTelemetry exporter reported a problem'),
    info: ignore,
    debug: ignore,
    verbose: ignore,
  };
}

// This file is the program of an exporter's thread, which `ExporterThread` starts.
const starter = connectToStarter<ExporterStarterCalls>();
const { name, timeoutMs, exporter: made }: ExporterSetup = workerData;
const secrets = made.kind === 'otlp' ? secretsOf(made.endpoint) : [];
const report = reportTo((level, text, message) => starter.notify('log', { level, fields: { report: text }, message }));
diag.setLogger(report, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });

const destination = lazy(async () => {
  const exporter: SpanExporter =
    made.kind === 'otlp'
      ? await createOtlpTraceExporter(made.endpoint, made.userAgent, process.env)
      : await loadExporterModule(made.path);
  return new SpanExporterDestination(name, exporter, systemClock, timeoutMs, secretMask(secrets));
});

const calls: ExporterCalls = {
  open: async () => void (await destination.get()),
  send: async (spans, abort) => (await destination.get()).send({ signal: 'traces', ranges: unpackSpans(spans) }, abort),
  close: async () => (await destination.ifNeeded())?.close(),
  collectGarbage: () => systemMachine.collectGarbage(),
};
starter.serve(calls);
