import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';

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
