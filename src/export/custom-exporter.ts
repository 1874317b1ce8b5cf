import { pathToFileURL } from 'node:url';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { SignalEndpoint } from '../config/destination-config.js';
import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import {
  ACCEPTED,
  type BatchOutcome,
  BROKEN_OFF,
  type Destination,
  refused,
  retryable,
  type SendResult,
  TAKES_NO_LOGS,
} from './destination.js';
import type { ItemBatch } from './wire/export-request.js';
import { countOf, type ItemRange } from './wire/item-window.js';
import { DecodedSpan } from './wire/wire-reader.js';

/**
 * Loads an exporter of one's own: an ES module whose default export is a SpanExporter, a SpanProcessor, or a function
 * that makes one (see `docs/examples/custom-exporter.mjs`).
 * @param path absolute.
 * @throws Error naming the file and what is wrong with it.
 */
export async function loadExporterModule(path: string): Promise<SpanExporter> {
  const made = await make(path);
  if (isSpanExporter(made)) return made;
  if (isSpanProcessor(made)) return new SpanProcessorExporter(made);
  throw new Error(
    `the exporter ${path} has no default export that is, or makes, an OpenTelemetry SpanExporter or SpanProcessor`,
  );
}

async function make(path: string): Promise<unknown> {
  try {
    const module: unknown = await import(pathToFileURL(path).href);
    const exported = typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined;
    return typeof exported === 'function' ? await exported() : exported;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new Error(`the exporter ${path} cannot be loaded: ${reason}`, { cause });
  }
}

function isSpanExporter(value: unknown): value is SpanExporter {
  return hasMethods(value, ['export', 'shutdown']);
}

function isSpanProcessor(value: unknown): value is SpanProcessor {
  return hasMethods(value, ['onStart', 'onEnd', 'forceFlush', 'shutdown']);
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}

/** Variables with headers for the destination that the environment names; the exporter below would send them to its own as well. */
const HEADER_VARIABLES = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'] as const;

/**
 * Makes OpenTelemetry's exporter for OTLP over HTTP, in JSON. It takes everything from `endpoint` and nothing from the environment.
 * @param userAgent for example `run-bridge/0.1.0`
 * @param environment the process's, in which header variables are hidden while the exporter is made
 */
export async function createOtlpTraceExporter(
  { url, headers, timeoutMs, compression }: SignalEndpoint,
  userAgent: string,
  environment: NodeJS.ProcessEnv,
): Promise<SpanExporter> {
  const [{ OTLPTraceExporter }, { CompressionAlgorithm }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/otlp-exporter-base'),
  ]);
  const hidden = HEADER_VARIABLES.map((name) => [name, environment[name]] as const);
  for (const name of HEADER_VARIABLES) delete environment[name];
  try {
    return new OTLPTraceExporter({
      ...{ url, headers: { ...headers }, timeoutMillis: timeoutMs, userAgent },
      compression: compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
      // Where it is left out, certificates come from the environment.
      httpAgentOptions: { keepAlive: true },
    });
  } finally {
    for (const [name, value] of hidden) if (value !== undefined) environment[name] = value;
  }
}

/**
 * Any OpenTelemetry SpanExporter as a destination. It gets spans, with the run's log records as their events. A batch that
 * it reports as failed is passed to it again later, with backoff and also after a restart, unless the error's `code` is an
 * HTTP status of refusal (4xx but 408 and 429): then it is counted as refused.
 */
export class SpanExporterDestination implements Destination {
  readonly signals = ['traces'] as const;
  /** The specification promises exporters that they are not called again before they are done. */
  readonly maxInFlight = 1;
  /** The export under way: a test waits for it. */
  private exporting: Promise<unknown> = Promise.resolve();

  /** @param masked masks secrets in what the exporter says */
  constructor(
    readonly name: string,
    private readonly exporter: SpanExporter,
    private readonly clock: Clock,
    /** How long the exporter may take for a batch. */
    private readonly timeoutMs: number,
    private readonly masked: (message: string) => string = (message) => message,
  ) {}

  async send({ signal, ranges }: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    if (signal === 'logs') return { result: TAKES_NO_LOGS, itemCount: countOf(ranges) };
    const spans = spansOf(ranges);
    const exported = this.exporting.then(() => this.export(spans, abort));
    this.exporting = exported;
    const result = await exported;
    return { result: { ...result, message: this.masked(result.message) }, itemCount: spans.length };
  }

  async close(): Promise<void> {
    await this.exporter.shutdown();
  }

  private export(spans: ReadableSpan[], abort: AbortSignal): Promise<SendResult> {
    if (abort.aborted) return Promise.resolve(BROKEN_OFF);
    return new Promise((resolve) => {
      const settle = (result: SendResult) => {
        timer.cancel();
        abort.removeEventListener('abort', onAbort);
        resolve(result);
      };
      const onAbort = () => settle(BROKEN_OFF);
      const timer = this.clock.after(this.timeoutMs, () => settle(retryable(`no result within ${this.timeoutMs} ms`)));
      abort.addEventListener('abort', onAbort, { once: true });
      const fail = (error: unknown) => settle(toFailure(error));
      try {
        const returned: unknown = this.exporter.export(spans, (result) => settle(toSendResult(result)));
        // An async function, which the interface does not ask for, says by its promise that it failed.
        Promise.resolve(returned).catch(fail);
      } catch (error) {
        fail(error);
      }
    });
  }
}

function spansOf(ranges: readonly ItemRange[]): ReadableSpan[] {
  const spans: ReadableSpan[] = [];
  for (const { window, from, to } of ranges) {
    for (let index = from; index < to; index++) spans.push(new DecodedSpan(window.messageOf(index), window.group));
  }
  return spans;
}

/** An exporter is third-party code, which may not return what its type declares. */
function toSendResult(result: unknown): SendResult {
  const { code, error } = isObject(result) ? result : {};
  return code === ExportResultCode.SUCCESS ? ACCEPTED : toFailure(error);
}

function toFailure(error: unknown): SendResult {
  const status = isObject(error) ? error.code : undefined;
  const message = error === undefined ? 'the exporter failed without an error' : reasonOf(error);
  const isRefusal = typeof status === 'number' && status >= 400 && status < 500 && status !== 408 && status !== 429;
  return isRefusal ? refused(status, message) : retryable(message, typeof status === 'number' ? status : null);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/**
 * A SpanProcessor as a SpanExporter: it gets `onEnd` for each span and `forceFlush` for each batch, and a batch has failed
 * when that rejects. `onStart` is never called: the spans have ended long ago.
 */
export class SpanProcessorExporter implements SpanExporter {
  constructor(private readonly processor: SpanProcessor) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    for (const span of spans) this.processor.onEnd(span);
    this.processor.forceFlush().then(
      () => done({ code: ExportResultCode.SUCCESS }),
      (reason: unknown) =>
        done({ code: ExportResultCode.FAILED, error: reason instanceof Error ? reason : new Error(String(reason)) }),
    );
  }

  shutdown(): Promise<void> {
    return this.processor.shutdown();
  }
}
