import { describe, expect, it } from 'vitest';
import type {
  AnyValue,
  KeyValue,
  OtlpLogRecord,
  OtlpSpan,
  TracesRequest,
} from '../../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import type { LogRecord, SpanEnd } from '../../../../src/record/telemetry-record.js';
import { decodeRequest } from '../../../fake/decode-at-once.js';

const json = new JsonCodec();
const TRACE = '0af7651916cd43dd8448eb211c80319c';

function keyValues(attributes: Readonly<Record<string, AnyValue>>): KeyValue[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value }));
}

function span(name: string, attributes: Readonly<Record<string, AnyValue>>, rest: Partial<OtlpSpan> = {}): OtlpSpan {
  return {
    traceId: TRACE,
    spanId: '00f067aa0ba902b7',
    traceState: '',
    parentSpanId: '',
    flags: 1,
    name,
    kind: 1,
    startTimeUnixNano: 1n,
    endTimeUnixNano: 2n,
    attributes: keyValues(attributes),
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    links: [],
    droppedLinksCount: 0,
    status: null,
    ...rest,
  };
}

function traces(spans: readonly OtlpSpan[], service = 'dbt-fusion', more: readonly KeyValue[] = []): TracesRequest {
  return {
    signal: 'traces',
    resources: [
      {
        resource: { attributes: [{ key: 'service.name', value: service }, ...more], droppedAttributesCount: 0 },
        schemaUrl: '',
        scopes: [
          {
            scope: { name: service, version: '', attributes: [], droppedAttributesCount: 0 },
            schemaUrl: '',
            records: spans,
          },
        ],
      },
    ],
  };
}

function decodeOne(name: string, attributes: Readonly<Record<string, AnyValue>>): SpanEnd {
  const { delivery } = decodeRequest(traces([span(name, attributes)]));
  const end = delivery.batches[0]?.records.find(({ recordType }) => recordType === 'SpanEnd');
  if (end === undefined) throw new Error('the span was not decoded');
  return end as SpanEnd;
}

describe('a span of the engine', () => {
  it('of a type without a name of its own is known by its attributes', () => {
    expect(decodeOne('Waiting', { unique_id: 'model.a.b', batch_id: '1' }).eventType).toMatch(
      /\.process\.ThreadPoolWait$/,
    );
    // The engine's name for it, with which it has sent no attribute at all.
    expect(decodeOne('Thread pool wait', {}).eventType).toMatch(/\.process\.ThreadPoolWait$/);
    const batch = { unique_id: 'model.a.b', batch_id: '1', batch_index: 2n, event_time_start: 'x' };
    expect(decodeOne('Batch 1', batch).eventType).toMatch(/\.node\.MicrobatchEvaluated$/);
  });

  it('of a type that nothing tells keeps everything it has', () => {
    const end = decodeOne('Quantum leap (7)', { leap: 7n, detail: '{"far":1.0}', ratio: 2, on: true });
    expect(end.eventType).toBe('v1.public.events.fusion.dev.Unknown');
    expect(end.spanName).toBe('Quantum leap (7)');
    expect(end.attributes.json).toBe('{"detail":{"far":1.0},"leap":7,"on":true,"ratio":2.0}');
  });

  it('keeps fields and enum values that the schema does not know', () => {
    const end = decodeOne('Node processed (model.a.b)', {
      node_outcome: 'NODE_OUTCOME_TELEPORTED',
      zeta_detail: '{"a":[1,2]}',
      note: '{not json',
    });
    expect(end.attributes.value).toEqual({
      node_outcome: 'NODE_OUTCOME_TELEPORTED',
      note: '{not json',
      zeta_detail: { a: [1, 2] },
    });
  });

  it('spells 64-bit numbers as strings and 32-bit ones as numbers, whatever they came as', () => {
    const end = decodeOne('Node processed (model.a.b)', { duration_ms: 366n, defined_at_line: 4n, rows_affected: '5' });
    expect(end.attributes.json).toBe('{"defined_at_line":4,"duration_ms":"366","rows_affected":"5"}');
  });

  it('keeps a text that looks like JSON where the schema says that it is a text', () => {
    expect(decodeOne('Query executed', { sql: '{"a":1}' }).attributes.json).toBe('{"sql":"{\\"a\\":1}"}');
  });

  it('keeps a nested text as a string when it is nested too deeply to be written again', () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    expect(decodeOne('Dev trace: x', { extra: deep }).attributes.text('extra')).toBe(deep);
  });

  it.each([
    ['NODE_SKIP_REASON_UPSTREAM', true],
    ['NODE_SKIP_REASON_PHASE_SKIPPED', true],
    ['NODE_SKIP_REASON_NO_OP', false],
  ])('of a phase that does not take place says so from the start, when it is known: %s', (reason, isKnown) => {
    const skipped = span('Node evaluated (unit_test.shop.revenue.u_ok)', {
      node_outcome: 'NODE_OUTCOME_SKIPPED',
      node_skip_reason: reason,
      phase: 'EXECUTION_PHASE_RUN',
    });
    const start = decodeRequest(traces([skipped])).delivery.batches[0]?.records[0];
    expect(start?.recordType).toBe('SpanStart');
    expect(start?.attributes.text('node_skip_reason')).toBe(isKnown ? reason : undefined);
    expect(start?.attributes.text('node_outcome')).toBe(isKnown ? 'NODE_OUTCOME_SKIPPED' : undefined);
  });

  it('starts without the count of packages, which is known when they are resolved, and with the code of the start', () => {
    const resolved = span('GenericOp: resolving packages from packages.yml (3 items)', {
      operation_id: 'deps-compute-package-lock',
      display_action: 'resolving packages from packages.yml',
      item_count_total: '3',
    });
    const installed = span(
      'Package "shop" installed',
      { package_name: 'shop', dbt_core_event_code: 'M016' },
      { spanId: '00f067aa0ba902b8' },
    );
    const { batches } = decodeRequest(traces([resolved, installed])).delivery;
    const records = batches.flatMap((batch) => batch.records);
    expect(
      records.map(({ recordType, spanName, attributes }) => ({ recordType, spanName, ...attributes.value })),
    ).toEqual([
      {
        recordType: 'SpanStart',
        spanName: 'GenericOp: resolving packages from packages.yml',
        operation_id: 'deps-compute-package-lock',
        display_action: 'resolving packages from packages.yml',
      },
      expect.objectContaining({ recordType: 'SpanEnd', spanName: resolved.name, item_count_total: '3' }),
      { recordType: 'SpanStart', spanName: installed.name, package_name: 'shop', dbt_core_event_code: 'M014' },
      expect.objectContaining({ recordType: 'SpanEnd', dbt_core_event_code: 'M016' }),
    ]);
  });

  it('of a package from Git starts with its address: name and version are known when it is there', () => {
    const address = { package_type: 'PACKAGE_TYPE_GIT', package_url_or_path: 'https://example.com/p.git' };
    const installed = span('Package "p" installed', { ...address, package_name: 'p', package_version: 'ba6d639e' });
    const start = decodeRequest(traces([installed])).delivery.batches[0]?.records[0];
    expect(start?.spanName).toBe('Package "https://example.com/p.git" installed');
    expect(start?.attributes.value).toEqual(address);
  });

  it.each([
    ['dbt parse', false],
    ['dbt parse --target duck', true],
    ['dbt parse -t duck --quiet', true],
    ['dbt parse --target-path out', false],
  ])('of an invocation knows the target from the start when its command line names it: %s', (command, isKnown) => {
    const invocation = span('dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', {
      eval_args: '{"command":"parse","target":"duck"}',
      raw_command: command,
    });
    const start = decodeRequest(traces([invocation])).delivery.batches[0]?.records[0];
    expect(start?.attributes.object('eval_args')?.target).toBe(isKnown ? 'duck' : undefined);
  });

  it('of a source whose freshness is looked at says so from the start', () => {
    const lastPhase = (phase: string) => {
      const node = span('Node processed (source.shop.raw.orders)', { last_phase: phase, duration_ms: '5' });
      return decodeRequest(traces([node])).delivery.batches[0]?.records[0]?.attributes.value;
    };
    expect(lastPhase('EXECUTION_PHASE_FRESHNESS_ANALYSIS')).toEqual({
      last_phase: 'EXECUTION_PHASE_FRESHNESS_ANALYSIS',
    });
    expect(lastPhase('EXECUTION_PHASE_RUN')).toEqual({});
  });

  it.each([
    ['hydrate_relation_cache', 'DEBUG'],
    ['deps-compute-package-lock', 'INFO'],
  ])('has the severity of its operation: %s', (operation, severity) => {
    expect(decodeOne('GenericOp: x (1 items)', { operation_id: operation }).severityText).toBe(severity);
  });

  it('in the spellings of documentation is read as its modern form', () => {
    const end = decodeOne('Node(model.a.b)', {
      unique_id: 'model.a.b',
      phase: 'Run',
      node_outcome: 'skipped',
      node_skip_reason: 'noop',
      test_outcome: 'failed',
    });
    expect(end.eventType).toBe('v1.public.events.fusion.node.NodeEvaluated');
    expect(end.spanName).toBe('Node evaluated (model.a.b)');
    expect(end.attributes.value).toEqual({
      node_outcome: 'NODE_OUTCOME_SKIPPED',
      node_skip_reason: 'NODE_SKIP_REASON_NO_OP',
      node_test_detail: { test_outcome: 'TEST_OUTCOME_FAILED' },
      phase: 'EXECUTION_PHASE_RUN',
      unique_id: 'model.a.b',
    });
  });

  it('in the spellings of documentation has the phase of a processed node where its message has it', () => {
    const detail = '{"failing_rows":3,"test_outcome":"failed"}';
    const end = decodeOne('Node processed (test.a.b)', { phase: 'Run', node_type: 'test', node_test_detail: detail });
    expect(end.attributes.value).toEqual({
      last_phase: 'EXECUTION_PHASE_RUN',
      node_test_detail: { failing_rows: 3, test_outcome: 'TEST_OUTCOME_FAILED' },
      node_type: 'NODE_TYPE_TEST',
    });
  });

  it.each([null, '[]', 'a text', 7n])('keeps an invocation’s eval_args that is no object: %s', (value) => {
    const end = decodeOne('dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', { eval_args: value });
    expect(end.eventType).toMatch(/\.Invocation$/);
    expect(end.attributes.get('eval_args')).toEqual(value === '[]' ? [] : value === 7n ? 7 : value);
  });

  it('keeps attributes named like what every object has', () => {
    const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'valueOf'];
    const attributes = names.map((key) => ({ key, value: key }));
    const { delivery } = decodeRequest(traces([span('Node processed (model.a.b)', {}, { attributes })]));
    const text = `{${names.map((name) => `"${name}":"${name}"`).join(',')}}`;
    expect(delivery.batches[0]?.records.map((record) => record.attributes.json)).toEqual([text, text]);
  });

  it('keeps span events, which the envelope has no key for', () => {
    const event = { timeUnixNano: 5n, name: 'retry', attributes: keyValues({ n: 1n }), droppedAttributesCount: 0 };
    const { delivery } = decodeRequest(traces([span('Phase: RUN', {}, { events: [event] })]));
    expect(delivery.batches[0]?.records[1]?.unknownFields).toEqual({
      events: [{ name: 'retry', time_unix_nano: '5', attributes: { n: 1 } }],
    });
  });
});

describe('a request', () => {
  it.each([
    ['a zero trace id', { traceId: '0'.repeat(32) }],
    ['a short trace id', { traceId: 'ab' }],
    ['no span id', { spanId: '' }],
    ['a span id of nine bytes', { spanId: 'a'.repeat(18) }],
    ['an end beyond int64', { endTimeUnixNano: 2n ** 63n }],
  ])('loses only the span with %s, and says so', (_name, fault) => {
    const { delivery, rejectedCount, rejectionMessage } = decodeRequest(
      traces([span('Phase: RUN', {}, fault), span('Phase: PARSE', {})]),
    );
    expect(rejectedCount).toBe(1);
    expect(rejectionMessage).toMatch(/^1 spans with/);
    expect(delivery.batches.flatMap(({ records }) => records)).toHaveLength(2);
  });

  it('of another service is kept as it came, apart from the runs', () => {
    const request = traces([span('GET /', { 'http.status': 200n })], 'airflow');
    const { delivery, rejectedCount } = decodeRequest(request);
    expect(rejectedCount).toBe(0);
    expect(delivery.batches).toEqual([]);
    expect(delivery.passthrough).toHaveLength(1);
    expect(json.decode('traces', Buffer.from(delivery.passthrough[0]?.body ?? ''))).toEqual(request);
    expect(delivery.passthrough[0]?.body).not.toContain('\n');
  });

  it('that another bridge has mapped already is passed on as it is', () => {
    const mapped = [{ key: 'telemetry.distro.name', value: 'run-bridge' }];
    const { delivery } = decodeRequest(traces([span('Phase: RUN', {})], 'dbt-fusion', mapped));
    expect(delivery.batches).toEqual([]);
    expect(delivery.passthrough[0]?.recordCount).toBe(1);
  });

  it('splits records by trace', () => {
    const { delivery } = decodeRequest(
      traces([span('Phase: RUN', {}), span('Phase: RUN', {}, { traceId: 'b'.repeat(32) })]),
    );
    expect(delivery.batches.map(({ traceId }) => traceId)).toEqual([TRACE, 'b'.repeat(32)]);
  });
});

describe('a log record of the engine', () => {
  const log: OtlpLogRecord = {
    timeUnixNano: 0n,
    observedTimeUnixNano: 7n,
    severityNumber: 18,
    severityText: '',
    body: 'broken',
    attributes: keyValues({ groups: [{ entries: keyValues({ name: 'finance' }) }] }),
    droppedAttributesCount: 0,
    flags: 1,
    traceId: TRACE,
    spanId: '00f067aa0ba902b7',
    eventName: 'v1.events.fusion.group.Groups',
  };
  const request = (records: readonly OtlpLogRecord[]) => ({
    signal: 'logs' as const,
    resources: traces([]).resources.map((group) => ({
      ...group,
      scopes: group.scopes.map((scope) => ({ ...scope, records })),
    })),
  });

  it.each([
    ['TRACE', 1],
    ['debug', 5],
    ['INFO', 9],
    ['Warning', 13],
    ['WARN', 13],
    ['ERROR', 17],
    ['error3', 19],
    ['FATAL', 21],
    ['NOISE', 0],
    ['', 0],
  ])('that says %j as its severity, without a number, has the number %d', (severityText, severityNumber) => {
    const body = json.encode(request([{ ...log, severityNumber: 0, severityText }]));
    const { batches } = decodeRequest(json.decode('logs', body)).delivery;
    expect(batches[0]?.records[0]).toMatchObject({ severityNumber, severityText });
  });

  it('outside the public package is kept whole, and gets the time when it was observed and a severity in words', () => {
    const record = decodeRequest(request([log])).delivery.batches[0]?.records[0] as LogRecord;
    expect(record).toMatchObject({ eventType: log.eventName, timeUnixNano: 7n, severityText: 'ERROR', body: 'broken' });
    expect(record.attributes.value).toEqual({ groups: [{ name: 'finance' }] });
  });

  it('without a trace belongs to no run and is passed on', () => {
    const { delivery, rejectedCount } = decodeRequest(request([{ ...log, traceId: '' }]));
    expect([rejectedCount, delivery.batches.length, delivery.passthrough.length]).toEqual([0, 0, 1]);
  });
});
