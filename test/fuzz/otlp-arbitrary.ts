import fc from 'fast-check';
import type {
  AnyValue,
  KeyValue,
  LogsRequest,
  OtlpLogRecord,
  OtlpSpan,
  ResourceGroup,
  TracesRequest,
} from '../../src/otlp/export-request.js';

/** Any request of spans that OTLP can carry, most of it the engine's or close to it. */
export const tracesRequests: fc.Arbitrary<TracesRequest> = fc
  .array(groupsOf(spans()), { maxLength: 2 })
  .map((resources) => ({ signal: 'traces', resources }));

/** Any request of log records that OTLP can carry. */
export const logsRequests: fc.Arbitrary<LogsRequest> = fc
  .array(groupsOf(logRecords()), { maxLength: 2 })
  .map((resources) => ({ signal: 'logs', resources }));

function groupsOf<T>(records: fc.Arbitrary<T>): fc.Arbitrary<ResourceGroup<T>> {
  const service = fc.constantFrom('dbt-core', 'dbt-core', 'dbt-fusion', 'dbt-tracing', 'airflow', '');
  const attributes: fc.Arbitrary<readonly KeyValue[]> = fc.oneof(
    { weight: 3, arbitrary: service.map((value) => [{ key: 'service.name', value }]) },
    { weight: 1, arbitrary: keyValues() },
  );
  const scope = fc.record({
    name: service,
    version: fc.constantFrom('', '2.0.0'),
    attributes: fc.constant([]),
    droppedAttributesCount: fc.constant(0),
  });
  return fc.record({
    resource: fc.record({ attributes, droppedAttributesCount: fc.constant(0) }),
    schemaUrl: fc.constantFrom('', 'https://opentelemetry.io/schemas/1.30.0'),
    scopes: fc.array(fc.record({ scope, schemaUrl: fc.constant(''), records: fc.array(records, { maxLength: 4 }) }), {
      maxLength: 2,
    }),
  });
}

function spans(): fc.Arbitrary<OtlpSpan> {
  const none = <T>(value: T, other: T) => fc.constantFrom(value, value, value, other);
  return fc.record({
    traceId: ids(16),
    spanId: ids(8),
    traceState: none('', 'a=b'),
    parentSpanId: ids(8),
    flags: fc.constantFrom(0, 1, 257),
    name: names(),
    kind: fc.constantFrom(0, 1, 3),
    startTimeUnixNano: times(),
    endTimeUnixNano: times(),
    attributes: keyValues(),
    droppedAttributesCount: none(0, 3),
    events: fc.array(
      fc.record({ timeUnixNano: times(), name: names(), attributes: keyValues(), droppedAttributesCount: none(0, 1) }),
      { maxLength: 1 },
    ),
    droppedEventsCount: none(0, 2),
    links: fc.array(
      fc.record({
        traceId: ids(16),
        spanId: ids(8),
        traceState: none('', 'a=b'),
        attributes: fc.array(keyValue(), { maxLength: 1 }),
        droppedAttributesCount: fc.constant(0),
        flags: fc.constantFrom(0, 1),
      }),
      { maxLength: 2 },
    ),
    droppedLinksCount: none(0, 2),
    status: fc.option(fc.record({ code: fc.constantFrom(0, 1, 2, 7), message: fc.oneof(fc.constant(''), texts()) })),
  });
}

function logRecords(): fc.Arbitrary<OtlpLogRecord> {
  return fc.record({
    timeUnixNano: times(),
    observedTimeUnixNano: times(),
    severityNumber: fc.constantFrom(0, 1, 5, 9, 13, 17, 24, 99),
    severityText: fc.constantFrom('', 'INFO', 'info', 'WARN'),
    body: fc.oneof({ weight: 3, arbitrary: texts() }, values()),
    attributes: keyValues(),
    droppedAttributesCount: fc.constant(0),
    flags: fc.constantFrom(0, 1),
    traceId: ids(16),
    spanId: ids(8),
    eventName: fc.oneof(
      fc.constantFrom('v1.public.events.fusion.log.UserLogMessage', 'v1.public.events.fusion.log.LogMessage', ''),
      texts(),
    ),
  });
}

function names(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom('Node processed (model.a.b)', 'Node evaluated (model.a.b)', 'Query executed', 'Node(model.a.b)'),
    fc.constantFrom('GenericOp: resolving (2 items)', 'Package "p" installed', 'Phase: RUN (nodes: 3)', ''),
    fc.constantFrom('dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', 'dbt process (x86_64-linux)'),
    texts(),
  );
}

function texts(): fc.Arbitrary<string> {
  return fc.string({ unit: 'binary', maxLength: 12 });
}

/** Mostly of a few traces and spans, so that they meet. */
function ids(length: number): fc.Arbitrary<string> {
  const few = fc.constantFrom(1, 2, 3).map((byte) => byte.toString(16).padStart(2, '0').repeat(length));
  const any = fc.uint8Array({ minLength: length, maxLength: length }).map((id) => Buffer.from(id).toString('hex'));
  return fc.oneof({ weight: 6, arbitrary: few }, any, fc.constantFrom('', '00', '0'.repeat(2 * length)));
}

function times(): fc.Arbitrary<bigint> {
  return fc.oneof(
    fc.constantFrom(0n, 5n, 1795221792681366001n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n),
    fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  );
}

function keyValues(): fc.Arbitrary<readonly KeyValue[]> {
  return fc.array(keyValue(), { maxLength: 6 });
}

function keyValue(): fc.Arbitrary<KeyValue> {
  const keys = fc.oneof(
    fc.constantFrom('phase', 'last_phase', 'node_outcome', 'node_skip_reason', 'duration_ms', 'sql', 'unique_id'),
    fc.constantFrom('operation_id', 'package_type', 'package_name', 'item_count_total', 'rows_affected', 'eval_args'),
    fc.constantFrom('node_test_detail', 'test_outcome', 'defined_at_line', 'sao_enabled', 'newer', 'metrics', ''),
    fc.constantFrom('dbt_core_event_code', 'run_bridge.only', 'run_bridge.event_type', '_event_type', '__proto__'),
    texts(),
  );
  return fc.record({ key: keys, value: values() });
}

function values(): fc.Arbitrary<AnyValue> {
  const plain: fc.Arbitrary<AnyValue> = fc.oneof(
    fc.constantFrom('EXECUTION_PHASE_RUN', 'Run', 'NODE_OUTCOME_SUCCESS', 'success', 'NODE_SKIP_REASON_UPSTREAM', '12'),
    fc.constantFrom('deps-compute-package-lock', 'PACKAGE_TYPE_GIT', 'v1.public.events.fusion.node.NodeEvaluated'),
    fc.constantFrom(
      '{"a":1.0,"b":[true]}',
      '{not json',
      '[]',
      '{\n}',
      '[[1]]',
      '',
      '{"command":"build"}',
      '{"a":1e999}',
    ),
    texts(),
    fc.boolean(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.nat().map(BigInt),
    fc.double(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 4 }),
  );
  const { any } = fc.letrec<{ any: AnyValue }>((tie) => ({
    any: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 6, arbitrary: plain },
      fc.array(tie('any'), { maxLength: 3 }),
      fc.array(fc.record({ key: texts(), value: tie('any') }), { maxLength: 3 }).map((entries) => ({ entries })),
    ),
  }));
  return any;
}
