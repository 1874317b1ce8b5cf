import { SpanStatusCode } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_SWITCHES } from '../../../../src/config/mapping-options.js';
import { Attributes } from '../../../../src/record/attributes.js';
import { eventNames, invocationSummary, mapRun, namedSpan, nodeSpan, spanId, withAttribute } from './mapped-run.js';
import { asOtlp, readLog } from './read-sample.js';

it("an outcome of a newer engine is the node's verdict in the engine's own word", () => {
  const deferred = readLog('samples/build-clean/otel.jsonl').map((logged) => {
    const { record } = logged;
    if (record.recordType !== 'SpanEnd' || record.spanName !== 'Node processed (model.shop.revenue)') return logged;
    const attributes = Attributes.of({ ...JSON.parse(record.attributes.json), node_outcome: 'NODE_OUTCOME_DEFERRED' });
    return { ...logged, record: { ...record, attributes } };
  });
  const { attributes } = nodeSpan(mapRun(deferred), 'model.shop.revenue');
  expect([attributes['run_bridge.node.verdict'], attributes.node_outcome]).toEqual([
    'deferred',
    'NODE_OUTCOME_DEFERRED',
  ]);
});

describe('an interrupted build', () => {
  const log = readLog('samples/interrupted/otel.jsonl');
  const invocation = invocationSummary({
    spanId: spanId('3b67967e969ba515'),
    processSpanId: spanId('1d1e855064a6c0de'),
    hasProcessEnd: true,
    startTimeUnixNano: 1795221814800000000n,
    endTimeUnixNano: 1795221818495318249n,
    verdict: 'canceled',
    statusMessage: 'Operation cancelled',
    totalErrors: 6,
  });

  describe.each([
    ['its JSONL', log],
    ['what OTLP brings', asOtlp(log)],
  ])('from %s', (_, records) => {
    const run = mapRun(records, {}, [invocation]);

    it.each([
      ['model.shop.slow_a', 'NODE_OUTCOME_SUCCESS'],
      ['model.shop.slow_b', 'NODE_OUTCOME_ERROR'],
    ])('says that %s was canceled, and what the engine reported', (uniqueId, reported) => {
      const span = nodeSpan(run, uniqueId);
      expect(span.status).toEqual({ code: SpanStatusCode.ERROR, message: 'canceled' });
      expect(span.attributes).toMatchObject({
        node_outcome: 'NODE_OUTCOME_CANCELED',
        'run_bridge.node_outcome.original': reported,
        'run_bridge.node.verdict': 'canceled',
        'error.type': 'canceled',
      });
    });

    it('leaves the phase that the interrupted node had finished before as it was', () => {
      const phases = withAttribute(run, 'unique_id', 'model.shop.slow_a').filter((s) => s.name.startsWith('Node eval'));
      const rendered = phases.filter((span) => span.attributes.phase === 'EXECUTION_PHASE_RENDER');
      expect(rendered.map((span) => span.status.code)).toEqual([SpanStatusCode.OK]);
    });

    it('marks the queries that were cut short', () => {
      const canceled = withAttribute(run, 'query_outcome', 'QUERY_OUTCOME_CANCELED');
      expect(canceled.map((span) => [span.status.message, span.attributes['error.type']])).toEqual([
        ['canceled', 'canceled'],
        ['canceled', 'canceled'],
      ]);
    });

    it('keeps the truth about real errors', () => {
      expect(nodeSpan(run, 'model.shop.broken').attributes['run_bridge.node.verdict']).toBe('error');
      expect(nodeSpan(run, 'unit_test.shop.ut_target.ut_wrong').attributes['run_bridge.node.verdict']).toBe('failed');
    });

    it('closes the trace with the verdict on its invocation', () => {
      const root = namedSpan(run, 'dbt invocation (build)');
      expect(root.spanContext().spanId).toBe('3b67967e969ba515');
      expect(root.status).toEqual({ code: SpanStatusCode.ERROR, message: 'canceled: Operation cancelled' });
      expect(root.attributes).toMatchObject({ 'run_bridge.verdict': 'canceled', 'metrics.total_errors': 6 });
      expect(root.events.some((event) => event.attributes?.code === 8995)).toBe(true);
    });

    it('anchors what it closes with at the end of the log', () => {
      const root = run.items.find(
        (item) => item.signal === 'traces' && item.span.spanContext().spanId === '3b67967e969ba515',
      );
      expect(root?.anchorOffset).toBe(records.at(-1)?.endOffset);
    });
  });

  it.each([
    ['dbt build', 'cancellation'],
    ['dbt build --fail-fast', 'failure'],
  ])('whose invocation ended with errors all the same is a pipeline that was: %s, %s', (rawCommand, result) => {
    const begun = log.find(({ record }) => record.eventType.endsWith('.Invocation'));
    const last = log.at(-1);
    if (begun?.record.recordType !== 'SpanStart' || last === undefined) throw new Error('the sample has no invocation');
    const record = {
      ...begun.record,
      recordType: 'SpanEnd' as const,
      endTimeUnixNano: invocation.endTimeUnixNano,
      status: { code: 2, message: 'Executed with errors' },
      attributes: Attributes.of({ ...JSON.parse(begun.record.attributes.json), raw_command: rawCommand }),
    };
    const ended = { ...last, record, offset: last.endOffset, endOffset: last.endOffset + 1 };
    const span = namedSpan(mapRun([...log, ended]), 'dbt invocation (build)');
    expect(span.attributes['cicd.pipeline.result']).toBe(result);
  });

  it('marks spans that never ended, known from JSONL', () => {
    const run = mapRun(log, {}, [invocation]);
    const unfinished = withAttribute(run, 'run_bridge.unfinished', true);
    expect(unfinished.map((span) => span.name)).toEqual([
      'dbt invocation (build)',
      'Phase: RUN',
      'Node evaluated (model.shop.slow_a)',
    ]);
    expect(unfinished.map((span) => span.status.code)).toEqual([
      SpanStatusCode.ERROR,
      SpanStatusCode.UNSET,
      SpanStatusCode.ERROR,
    ]);
    expect(withAttribute(run, 'run_bridge.synthetic', true)).toEqual([]);
  });

  it('makes the invocation span where OTLP never brought it, and the other spans that children name', () => {
    const run = mapRun(asOtlp(log), {}, [invocation]);
    const made = withAttribute(run, 'run_bridge.synthetic', true);
    // The three spans that the run's JSONL shows as never ended.
    expect(made.map((span) => [span.name, span.spanContext().spanId, span.parentSpanContext?.spanId])).toEqual([
      ['missing span', '8f2e462e7bbaceaa', '3b67967e969ba515'],
      ['Phase: RUN', '6b3c7bbcb0f014a9', '3b67967e969ba515'],
      ['dbt invocation (build)', '3b67967e969ba515', undefined],
    ]);
    expect(made[0]?.attributes.unique_id).toBe('model.shop.slow_a');
    expect(made[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'canceled' });
  });

  it('loses no event over OTLP', () => {
    const run = mapRun(asOtlp(log), {}, [invocation]);
    const records = log.filter(({ record }) => record.recordType === 'LogRecord');
    const own = ['exception', 'test_warned'];
    const eventCount = run.spans.reduce(
      (sum, span) => sum + eventNames(span).filter((n) => !own.includes(n)).length,
      0,
    );
    expect(eventCount).toBe(records.length);
  });

  it('puts messages of spans that never came on the invocation where nothing else is left of those', () => {
    const childless = log.filter(
      ({ record }) => record.recordType === 'LogRecord' || record.parentSpanId !== '8f2e462e7bbaceaa',
    );
    const run = mapRun(asOtlp(childless), {}, [invocation]);
    const root = namedSpan(run, 'dbt invocation (build)');
    const moved = root.events.filter((event) => event.attributes?.['run_bridge.event.span_id'] === '8f2e462e7bbaceaa');
    expect(moved.map((event) => event.attributes?.unique_id)).toEqual(['model.shop.slow_a', 'model.shop.slow_a']);
  });

  it.each([
    ['interrupted', '3b67967e969ba515'],
    ['fail-fast', 'e6928bc6bee48d7b'],
  ])('leaves no orphan in %s', (sample, id) => {
    const records = asOtlp(readLog(`samples/${sample}/otel.jsonl`));
    const run = mapRun(records, {}, [{ ...invocation, spanId: spanId(id), startTimeUnixNano: 0n }]);
    const ids = new Set(run.spans.map((span) => span.spanContext().spanId));
    const roots = run.spans.filter((span) => !ids.has(span.parentSpanContext?.spanId ?? ''));
    expect(roots.map((span) => span.name).sort()).toEqual(['dbt invocation (build)', 'dbt process (x86_64-linux)']);
    expect(ids.size).toBe(run.spans.length);
  });
});

describe('a build that failed fast', () => {
  const log = readLog('samples/fail-fast/otel.jsonl');
  const invocation = invocationSummary({
    spanId: spanId('e6928bc6bee48d7b'),
    startTimeUnixNano: 1795221813229096407n,
    endTimeUnixNano: 1795221813609221818n,
    verdict: 'error',
  });

  it('has one root for its orphans, marked, with the verdict and the command', () => {
    const run = mapRun(asOtlp(log), {}, [invocation]);
    const root = namedSpan(run, 'dbt invocation (build)');
    expect(root.status).toEqual({ code: SpanStatusCode.ERROR, message: 'error' });
    expect(root.attributes).toMatchObject({
      event_type: 'v1.public.events.fusion.invocation.Invocation',
      'run_bridge.synthetic': true,
      'run_bridge.verdict': 'error',
      'eval_args.command': 'build',
      raw_command: 'dbt build --fail-fast',
      invocation_id: '01a1fb8e-f7d2-7b22-8e23-86ed4d01f4e4',
    });
    const orphans = run.spans.filter((span) => span.parentSpanContext?.spanId === 'e6928bc6bee48d7b');
    expect(orphans.length).toBeGreaterThan(10);
  });

  it('exports the nodes that never ended, the interrupted ones as canceled', () => {
    const run = mapRun(log, {}, [invocation]);
    const verdicts = withAttribute(run, 'run_bridge.unfinished', true)
      .filter((span) => span.name.startsWith('Node processed'))
      .map((span) => [span.attributes.unique_id, span.attributes['run_bridge.node.verdict']]);
    expect(verdicts).toEqual([
      ['snapshot.shop.cust_snap', 'canceled'],
      ['model.shop.orders_inc', 'canceled'],
      ['model.shop.broken', 'unfinished'],
      ['model.shop.revenue', 'unfinished'],
      ['unit_test.shop.revenue.paid_revenue', 'canceled'],
    ]);
  });

  it('ends spans that never ended with the run', () => {
    const run = mapRun(log, {}, [invocation]);
    for (const span of withAttribute(run, 'run_bridge.unfinished', true)) {
      expect(BigInt(span.endTime[0]) * 1_000_000_000n + BigInt(span.endTime[1])).toBe(1795221813609221818n);
    }
  });

  it('leaves both out where the switch says so', () => {
    const run = mapRun(log, { switches: { ...DEFAULT_MAPPING_SWITCHES, gaps: false } }, [invocation]);
    expect(run.spans).toHaveLength(119);
  });
});

describe('a build in an orchestrator’s trace', () => {
  const log = readLog('samples/joined/otel.jsonl');

  it('keeps the outer span as the parent of both roots', () => {
    const run = mapRun(asOtlp(log), {}, [
      invocationSummary({ spanId: spanId('d8a5e6af100b5efa'), hasInvocationEnd: true, verdict: 'success' }),
    ]);
    const roots = [namedSpan(run, 'dbt invocation (build)'), namedSpan(run, 'dbt process (x86_64-linux)')];
    expect(roots.map((span) => span.parentSpanContext?.spanId)).toEqual(['b7ad6b7169203331', 'b7ad6b7169203331']);
    expect(roots[0]?.spanContext().traceId).toBe('0af7651916cd43dd8448eb211c80319c');
    expect(run.spans).toHaveLength(126);
    expect(run.spans.filter((span) => span.status.code === SpanStatusCode.ERROR)).toEqual([]);
  });

  it('closes an invocation whose span is missing below the outer span', () => {
    const withoutRoot = asOtlp(log).filter(({ record }) => record.spanId !== 'd8a5e6af100b5efa');
    const run = mapRun(withoutRoot, {}, [
      invocationSummary({
        spanId: spanId('d8a5e6af100b5efa'),
        outerParentSpanId: spanId('b7ad6b7169203331'),
        verdict: 'lost',
        command: null,
        rawCommand: null,
      }),
    ]);
    const root = namedSpan(run, 'dbt invocation');
    expect(root.parentSpanContext?.spanId).toBe('b7ad6b7169203331');
    expect(root.status).toEqual({ code: SpanStatusCode.ERROR, message: 'lost' });
  });
});
