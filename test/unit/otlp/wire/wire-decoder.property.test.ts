import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AnyValue, OtlpSpan, TracesRequest } from '../../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { WireDecoder } from '../../../../src/otlp/wire/wire-decoder.js';
import { propertyRuns } from '../../../tool/property-runs.js';
import { misreading } from '../../../tool/protobufjs-reading.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const decoder = new WireDecoder('traces', codecs);

// Damaged bodies are tried by test/fuzz.
it('decoding spans straight from the wire gives what protobufjs reads, of any span that OTLP can carry', () => {
  fc.assert(
    fc.property(fc.array(spans(), { maxLength: 4 }), fc.constantFrom('dbt-core', 'airflow'), (list, service) => {
      const body = codecs.protobuf.encode(requestOf(list, service));
      // The second time it has seen the names.
      for (let round = 0; round < 2; round++)
        expect(misreading('traces', body, (bytes) => decoder.decode(bytes))).toBeUndefined();
    }),
    { numRuns: propertyRuns(1500) },
  );
});

function spans(): fc.Arbitrary<OtlpSpan> {
  const names = fc.constantFrom(
    'Node processed (model.a.b)',
    'Node evaluated (model.a.b)',
    'Query executed',
    'GenericOp: resolving (2 items)',
    'Package "p" installed',
    'Phase: RUN (nodes: 3)',
    'dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)',
    'Node(model.a.b)',
    'anything "quoted"\n\u0001 ü 日本',
    '',
  );
  const keys = fc.oneof(
    fc.constantFrom('phase', 'last_phase', 'node_outcome', 'node_skip_reason', 'duration_ms', 'sql', 'unique_id'),
    fc.constantFrom('operation_id', 'package_type', 'package_name', 'item_count_total', 'rows_affected'),
    fc.constantFrom(
      'node_test_detail',
      'test_outcome',
      'defined_at_line',
      'sao_enabled',
      'newer',
      'dbt_core_event_code',
    ),
    fc.constantFrom('eval_args', 'metrics', 'run_bridge.only', 'run_bridge.event_type'),
    fc.string({ maxLength: 8, unit: 'grapheme' }),
  );
  const values: fc.Arbitrary<AnyValue> = fc.oneof(
    fc.constantFrom('EXECUTION_PHASE_RUN', 'Run', 'NODE_OUTCOME_SUCCESS', 'success', 'NODE_SKIP_REASON_UPSTREAM', '12'),
    fc.constantFrom(
      'EXECUTION_PHASE_FRESHNESS_ANALYSIS',
      'deps-compute-package-lock',
      'hydrate_relation_cache',
      'PACKAGE_TYPE_GIT',
    ),
    fc.constantFrom(
      '{"a":1.0,"b":[true]}',
      '{not json',
      '[]',
      '{\n}',
      '[[1]]',
      '',
      '{"target":"duck","command":"build"}',
      '{"failing_rows":3,"test_outcome":"failed"}',
    ),
    fc.string({ unit: 'binary' }),
    fc.boolean(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.nat().map(BigInt),
    fc.double(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 4 }),
    fc.constant([1n, 'x']),
  );
  const id = (length: number) =>
    fc.uint8Array({ minLength: length, maxLength: length }).map((b) => Buffer.from(b).toString('hex'));
  const ids = (length: number) =>
    fc.oneof({ weight: 9, arbitrary: id(length) }, fc.constantFrom('', '00', '0'.repeat(2 * length)));
  const time = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    fc.constantFrom(0n, 2n ** 63n, 1795221792681366001n, 5n),
  );
  return fc.record({
    traceId: ids(16),
    spanId: ids(8),
    traceState: fc.constantFrom('', '', '', 'a=b'),
    parentSpanId: ids(8),
    flags: fc.constantFrom(0, 1, 257),
    name: names,
    kind: fc.constantFrom(0, 1, 3),
    startTimeUnixNano: time,
    endTimeUnixNano: time,
    attributes: fc.array(fc.record({ key: keys, value: values }), { maxLength: 6 }),
    droppedAttributesCount: fc.constantFrom(0, 0, 3),
    events: fc.constantFrom([], [], [{ timeUnixNano: 5n, name: 'e', attributes: [], droppedAttributesCount: 0 }]),
    droppedEventsCount: fc.constant(0),
    links: fc.array(
      fc.record({
        traceId: ids(16),
        spanId: ids(8),
        traceState: fc.constant(''),
        attributes: fc.constantFrom([], [], [{ key: 'k', value: 'v' }]),
        droppedAttributesCount: fc.constant(0),
        flags: fc.constantFrom(0, 1),
      }),
      { maxLength: 2 },
    ),
    droppedLinksCount: fc.constant(0),
    status: fc.constantFrom(
      null,
      { code: 0, message: '' },
      { code: 1, message: '' },
      { code: 2, message: 'a "b"\n' },
      { code: 0, message: 'x' },
    ),
  });
}

function requestOf(records: readonly OtlpSpan[], service: string): TracesRequest {
  const resource = { attributes: [{ key: 'service.name', value: service }], droppedAttributesCount: 0 };
  const scope = { name: service, version: '1', attributes: [], droppedAttributesCount: 0 };
  return { signal: 'traces', resources: [{ resource, schemaUrl: '', scopes: [{ scope, schemaUrl: '', records }] }] };
}
