import { ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Clock } from '../component/clock.js';
import { reasonOf } from '../component/reason-of.js';
import type { SendResult } from '../delivery/transport.js';
import type { BatchOutcome, Destination } from './destination.js';
import type { ItemBatch } from './item-batch.js';

/** How long an exporter may take for a batch, in milliseconds; OpenTelemetry's default for OTEL_BSP_EXPORT_TIMEOUT. */
const EXPORT_TIMEOUT_MS = 30_000;

const ACCEPTED: SendResult = { kind: 'accepted', rejectedCount: 0, message: '' };

/**
 * Any OpenTelemetry SpanExporter as a destination. It gets spans, with the run's log records as their events. A batch that
 * it reports as failed is handed to it again later, with backoff and also after a restart, unless the error's `code` is an
 * HTTP status of refusal (4xx but 408 and 429): then it is counted as refused.
 */
export class SpanExporterDestination implements Destination {
  readonly signals = ['traces'] as const;
  /** The specification promises exporters that they are not called again before they are done. */
  readonly maxInFlight = 1;

  constructor(
    readonly name: string,
    private readonly exporter: SpanExporter,
    private readonly clock: Clock,
  ) {}

  async send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    const itemCount = batch.items.length;
    if (batch.signal === 'logs') return { result: refused(0, 'a span exporter takes no log records'), itemCount };
    return { result: await this.export([...batch.items], abort), itemCount };
  }

  async close(): Promise<void> {
    await this.exporter.shutdown();
  }

  private export(spans: ReadableSpan[], abort: AbortSignal): Promise<SendResult> {
    return new Promise((resolve) => {
      const settle = (result: SendResult) => {
        timer.cancel();
        abort.removeEventListener('abort', onAbort);
        resolve(result);
      };
      const onAbort = () => settle(retryable('the export was broken off'));
      const timer = this.clock.after(EXPORT_TIMEOUT_MS, () =>
        settle(retryable(`no result within ${EXPORT_TIMEOUT_MS} ms`)),
      );
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

/** An exporter is somebody else's program, and need not say what its type says. */
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

function retryable(message: string, status: number | null = null): SendResult {
  return { kind: 'retryable', status, retryAfterMs: null, message };
}

function refused(status: number, message: string): SendResult {
  return { kind: 'refused', status, message };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
