// An exporter of one's own: prints a line for each failed node and test of a run.
//
// In run-bridge.yaml:
//
//   destinations:
//     failures:
//       protocol: sdk
//       exporter: ./custom-exporter.mjs
//
// The default export is a SpanExporter or a SpanProcessor of OpenTelemetry, or a function that makes one. It gets each
// run's spans in order, with the run's log records as span events, redacted and mapped as for any other destination.
// A batch that is reported as failed comes again later, also after a restart; so the same span may come twice.
// Any ready-made exporter does as well:
//
//   import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
//   export default () => new OTLPTraceExporter({ url: 'http://127.0.0.1:4318/v1/traces' });

const STATUS_ERROR = 2;
const SUCCESS = 0;
const FAILED = 1;

class FailureExporter {
  export(spans, done) {
    try {
      for (const span of spans) {
        if (span.status.code !== STATUS_ERROR) continue;
        process.stderr.write(`${span.spanContext().traceId} ${span.name}: ${span.status.message ?? ''}\n`);
      }
      done({ code: SUCCESS });
    } catch (error) {
      done({ code: FAILED, error });
    }
  }

  async shutdown() {}
}

export default () => new FailureExporter();
