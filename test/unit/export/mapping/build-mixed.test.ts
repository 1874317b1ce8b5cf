import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { eventNames, mapRun, namedSpan, nodeSpan, withAttribute } from './mapped-run.js';
import { asOtlp, readLog } from './read-sample.js';

const log = readLog('samples/build-mixed/otel.jsonl');
const INVOCATION = 'afb5d096a1eb44cd';

// Expectations are read off the run's stdout.txt.
describe.each([
  ['its JSONL', log],
  ['what OTLP brings', asOtlp(log)],
])('a build with all outcomes, from %s', (_, records) => {
  const run = mapRun(records);

  it('has each ended span once, with the ids, parents and times of the log', () => {
    const ends = log.flatMap(({ record }) => (record.recordType === 'SpanEnd' ? [record] : []));
    expect(run.spans).toHaveLength(ends.length);
    for (const [index, span] of run.spans.entries()) {
      const end = ends[index];
      expect(span.spanContext()).toEqual({ traceId: end?.traceId, spanId: end?.spanId, traceFlags: 1 });
      expect(span.parentSpanContext?.spanId ?? null).toBe(end?.parentSpanId);
      expect(BigInt(span.startTime[0]) * 1_000_000_000n + BigInt(span.startTime[1])).toBe(end?.startTimeUnixNano);
      expect(BigInt(span.endTime[0]) * 1_000_000_000n + BigInt(span.endTime[1])).toBe(end?.endTimeUnixNano);
    }
  });

  it('has one tree below the invocation, beside the process', () => {
    const ids = new Set(run.spans.map((span) => span.spanContext().spanId));
    const roots = run.spans.filter((span) => !ids.has(span.parentSpanContext?.spanId ?? ''));
    expect(roots.map((span) => span.name)).toEqual(['dbt invocation (build)', 'dbt process (x86_64-linux)']);
  });

  it.each([
    ['seed.shop.raw_orders', 'success', SpanStatusCode.OK],
    ['model.shop.stg_orders', 'success', SpanStatusCode.OK],
    ['test.shop.no_negative', 'success', SpanStatusCode.OK],
    ['model.shop.eph_paid', 'skipped', SpanStatusCode.OK],
    ['model.shop.ut_target', 'skipped', SpanStatusCode.OK],
    ['model.shop.after_broken', 'skipped', SpanStatusCode.OK],
    ['test.shop.orders_customer_warn.d69b09940d', 'warned', SpanStatusCode.OK],
    ['test.shop.status_strict.0c25ec6282', 'failed', SpanStatusCode.ERROR],
    ['unit_test.shop.ut_target.ut_wrong', 'failed', SpanStatusCode.ERROR],
    ['model.shop.broken', 'error', SpanStatusCode.ERROR],
  ])('says of %s that it is %s', (uniqueId, verdict, status) => {
    const span = nodeSpan(run, uniqueId);
    expect(span.attributes['run_bridge.node.verdict']).toBe(verdict);
    expect(span.status.code).toBe(status);
  });

  it('marks the failed test with status, type, counts and an exception', () => {
    const span = nodeSpan(run, 'test.shop.status_strict.0c25ec6282');
    expect(span.status.message).toBe('test failed: 1 failing row');
    expect(span.attributes).toMatchObject({
      test_outcome: 'TEST_OUTCOME_FAILED',
      failing_rows: 1,
      node_outcome: 'NODE_OUTCOME_SUCCESS',
      'error.type': 'test_failed',
    });
    expect(span.events.at(-1)).toMatchObject({
      name: 'exception',
      attributes: { 'exception.type': 'test_failed', 'exception.message': 'test failed: 1 failing row' },
    });
  });

  it('says that a test has passed, which JSON leaves out', () => {
    const span = nodeSpan(run, 'test.shop.no_negative');
    expect(span.attributes).toMatchObject({ test_outcome: 'TEST_OUTCOME_PASSED', failing_rows: 0 });
    expect(eventNames(span)).not.toContain('exception');
  });

  it('gives the warned test an event', () => {
    const span = nodeSpan(run, 'test.shop.orders_customer_warn.d69b09940d');
    expect(eventNames(span)).toContain('test_warned');
    expect(span.attributes.test_outcome).toBe('TEST_OUTCOME_WARNED');
  });

  it("shows the unit test's columns but not its values", () => {
    const exception = nodeSpan(run, 'unit_test.shop.ut_target.ut_wrong').events.at(-1);
    expect(exception?.attributes?.['exception.message']).toBe(
      'unit test failed: 1 failing row\norder_id | double_amount\n1 differing row(s), values redacted',
    );
  });

  it('tells why the broken model failed, in the words of the log', () => {
    const span = nodeSpan(run, 'model.shop.broken');
    expect(span.attributes['error.type']).toBe('DbDriverFailed');
    expect(span.status.message).toBe(
      'Database Error in model broken (target/run/shop/models/marts/broken.sql) ' +
        'Binder Error: Referenced column "nonexistent_column" not found in FROM clause!',
    );
    expect(eventNames(span)).toContain('exception');
  });

  it('marks the failed query with its class of error', () => {
    const [query, ...others] = run.spans.filter(
      (span) => span.kind === SpanKind.CLIENT && span.status.code === SpanStatusCode.ERROR,
    );
    expect(others).toEqual([]);
    expect(query?.attributes).toMatchObject({ unique_id: 'model.shop.broken', 'error.type': 'Binder Error' });
    expect(query?.attributes).not.toHaveProperty('query_error_vendor_code');
  });

  it('links a skipped node to the node that caused it', () => {
    const causes = ['model.shop.after_broken', 'model.shop.ut_target'].map((id) => nodeSpan(run, id).links.at(-1));
    const ids = [nodeSpan(run, 'model.shop.broken'), nodeSpan(run, 'unit_test.shop.ut_target.ut_wrong')];
    expect(causes.map((link) => link?.context.spanId)).toEqual(ids.map((span) => span.spanContext().spanId));
    expect(causes[0]?.attributes).toEqual({ 'run_bridge.link.type': 'skip_cause', unique_id: 'model.shop.broken' });
    const attributes = nodeSpan(run, 'model.shop.after_broken').attributes;
    expect(attributes['node_skip_upstream_detail.upstream_unique_id']).toBe('model.shop.broken');
  });

  it('puts the log records on their spans, and gives each as a log record', () => {
    const records = log.flatMap(({ record }) => (record.recordType === 'LogRecord' ? [record] : []));
    const own = ['exception', 'test_warned'];
    expect(run.logs.filter(({ eventName }) => !own.includes(eventName))).toHaveLength(records.length);
    const eventCount = run.spans.reduce(
      (sum, span) => sum + eventNames(span).filter((n) => !own.includes(n)).length,
      0,
    );
    expect(eventCount).toBe(records.length);
    for (const record of records) {
      const span = run.spans.find((one) => one.spanContext().spanId === record.spanId);
      expect(eventNames(span ?? namedSpan(run, ''))).toContain(record.eventType.split('.').at(-1));
    }
  });

  it('carries the log record itself, redacted', () => {
    const error = run.logs.find((one) => one.attributes.code === 1308);
    expect(error).toMatchObject({
      severityNumber: 17,
      severityText: 'ERROR',
      eventName: 'v1.public.events.fusion.log.LogMessage',
      attributes: { code: 1308, code_name: 'DbDriverFailed', unique_id: 'model.shop.broken' },
    });
    expect(error?.body).toMatch(/^Database Error in model broken \(target\/run\/shop\/models\/marts\/broken.sql\)\n/);
    expect(error?.spanContext?.traceId).toBe('01a1fb8ea78d7281ae8c1be536b674cd');
  });

  it("carries the invocation's metrics and arguments as attributes", () => {
    const invocation = namedSpan(run, 'dbt invocation (build)');
    expect(invocation.spanContext().spanId).toBe(INVOCATION);
    expect(invocation.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Executed with errors' });
    expect(invocation.attributes).toMatchObject({
      event_type: 'v1.public.events.fusion.invocation.Invocation',
      'metrics.total_errors': 3,
      'metrics.total_warnings': 3,
      'metrics.status_counts.success': 15,
      'metrics.status_counts.error': 3,
      'metrics.node_type_counts.model': 8,
      'eval_args.command': 'build',
      'eval_args.target': 'duck',
      'eval_args.exclude': ['tag:slow'],
      'eval_args.vars': '?',
      'run_bridge.span.original_name': 'dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)',
    });
  });

  it("gives queries OTel's database attributes and takes the values out", () => {
    const query = withAttribute(run, 'unique_id', 'model.shop.eph_paid').concat(
      withAttribute(run, 'unique_id', 'model.shop.revenue').filter((span) => span.kind === SpanKind.CLIENT),
    );
    const create = query.find((span) => span.attributes['db.operation.name'] === 'CREATE TABLE');
    expect(create?.attributes).toMatchObject({ 'db.system.name': 'duckdb', 'db.namespace': 'shop|main' });
    expect(create?.attributes['db.query.text']).toContain('where status = ?');
    expect(create?.attributes).not.toHaveProperty('sql');
  });

  it("adds a node's query time", () => {
    const { attributes } = nodeSpan(run, 'model.shop.revenue');
    const queries = withAttribute(run, 'unique_id', 'model.shop.revenue').filter((s) => s.kind === SpanKind.CLIENT);
    expect(attributes['run_bridge.node.query_count']).toBe(queries.length);
    const sumMs = queries.reduce((sum, span) => sum + span.duration[0] * 1000 + span.duration[1] / 1e6, 0);
    expect(attributes['run_bridge.node.query_time_ms']).toBeCloseTo(sumMs, 2);
    expect(attributes.duration_ms).toBeTypeOf('number');
  });

  it('has names that do not change from run to run', () => {
    const names = new Set(run.spans.map((span) => span.name));
    expect(names).toContain('Phase: RUN');
    expect(namedSpan(run, 'Phase: RUN').attributes['run_bridge.span.original_name']).toBe('Phase: RUN (nodes: 21)');
    expect([...names].filter((name) => /nodes: \d|[0-9a-f]{8}-/.test(name))).toEqual([]);
  });

  it('keeps the anchors of each signal in order', () => {
    for (const signal of ['traces', 'logs']) {
      const anchors = run.items.filter((item) => item.signal === signal).map((item) => item.anchorOffset);
      expect(anchors).toEqual([...anchors].sort((a, b) => a - b));
    }
  });
});

describe('the same outcomes', () => {
  it('are sent by the commercial build of the engine', () => {
    const run = mapRun(readLog('samples/build-mixed-fusion/otel.jsonl'));
    const failed = run.spans.filter((span) => span.status.code === SpanStatusCode.ERROR && /^Node p/.test(span.name));
    expect(failed.map((span) => span.attributes.unique_id).sort()).toEqual([
      'model.shop.broken',
      'test.shop.status_strict.0c25ec6282',
      'unit_test.shop.ut_target.ut_wrong',
    ]);
  });

  it('keep an event that the public schema does not know, without its addresses', () => {
    const run = mapRun(readLog('samples/build-mixed-fusion/otel.jsonl'));
    const groups = run.logs.find((one) => one.eventName === 'v1.events.fusion.group.Groups');
    expect(groups?.attributes.groups).toBe('[{"name":"finance","owner":{"emails":["?"],"name":"Fin Team"}}]');
    const open = mapRun(readLog('samples/build-mixed-fusion/otel.jsonl'), { redaction: 'off' });
    const openGroups = open.logs.find((one) => one.eventName === 'v1.events.fusion.group.Groups');
    expect(openGroups?.attributes.groups).toContain('fin@example.com');
  });
});
