import type { KeyValue } from '../otlp/export-request.js';
import { JsonCodec } from '../otlp/json-codec.js';
import { STEP_ATTRIBUTE } from '../record/attributes.js';
import type { PassthroughBatch } from '../record/record-batch.js';
import type { SpanId, TraceId } from '../record/telemetry-record.js';
import type { ChildEnding } from './command-facts.js';

/** What the span of a wrapped command says. */
export interface CommandSpan {
  readonly traceId: TraceId;
  readonly spanId: SpanId;
  /** The caller's span; `null` where there is none. */
  readonly parentSpanId: SpanId | null;
  /** The caller's `TRACESTATE`; empty for none. */
  readonly traceState: string;
  readonly stepId: string;
  /** The command line, with secrets taken out. */
  readonly command: readonly string[];
  readonly startedUnixMs: number;
  readonly endedUnixMs: number;
  readonly ending: ChildEnding;
  readonly pid: number | undefined;
  readonly cpuSeconds: number | undefined;
  readonly peakMemoryBytes: number | undefined;
}

const KIND_INTERNAL = 1;
const SAMPLED = 1;
const STATUS_OK = 1;
const STATUS_ERROR = 2;
const SCOPE = 'run-bridge';

/**
 * The span as telemetry of another service than the engine: it is kept beside the runs and passed on as it is. Names of
 * attributes: https://opentelemetry.io/docs/specs/semconv/registry/attributes/process/, and `run_bridge.*` for what has none.
 */
export function toPassthroughBatch(span: CommandSpan): PassthroughBatch {
  const { traceId, spanId, parentSpanId, traceState, stepId, command, ending } = span;
  const resource = { 'service.name': SCOPE, [STEP_ATTRIBUTE]: stepId };
  const [program = ''] = command;
  const record = {
    ...{ traceId, spanId, traceState, parentSpanId: parentSpanId ?? '', flags: SAMPLED, kind: KIND_INTERNAL },
    name: `exec ${program}`,
    startTimeUnixNano: nano(span.startedUnixMs),
    endTimeUnixNano: nano(span.endedUnixMs),
    attributes: [
      ...attributes({
        'process.executable.name': program,
        'process.command_args': command,
        'process.pid': span.pid === undefined ? undefined : BigInt(span.pid),
        'process.exit.code': ending.kind === 'killed' ? undefined : BigInt(ending.exitCode),
        'run_bridge.command.signal': ending.kind === 'killed' ? ending.signal : undefined,
        'run_bridge.command.cpu_seconds': span.cpuSeconds,
        'run_bridge.command.peak_memory_bytes':
          span.peakMemoryBytes === undefined ? undefined : BigInt(span.peakMemoryBytes),
      }),
    ],
    ...{ droppedAttributesCount: 0, events: [], droppedEventsCount: 0, links: [], droppedLinksCount: 0 },
    status: statusOf(ending),
  };
  const body = new JsonCodec().encode({
    signal: 'traces',
    resources: [
      {
        resource: { attributes: attributes(resource), droppedAttributesCount: 0 },
        schemaUrl: '',
        scopes: [
          {
            scope: { name: SCOPE, version: '', attributes: [], droppedAttributesCount: 0 },
            schemaUrl: '',
            records: [record],
          },
        ],
      },
    ],
  });
  return { signal: 'traces', body: Buffer.from(body).toString('utf8'), recordCount: 1 };
}

function statusOf(ending: ChildEnding) {
  switch (ending.kind) {
    case 'exited':
      return ending.exitCode === 0
        ? { code: STATUS_OK, message: '' }
        : { code: STATUS_ERROR, message: `exit code ${ending.exitCode}` };
    case 'killed':
      return { code: STATUS_ERROR, message: `killed by ${ending.signal}` };
    case 'notStarted':
      return { code: STATUS_ERROR, message: ending.reason };
  }
}

function attributes(values: Readonly<Record<string, KeyValue['value'] | undefined>>): KeyValue[] {
  return Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value }]));
}

function nano(unixMs: number): bigint {
  return BigInt(Math.round(unixMs)) * 1_000_000n;
}
