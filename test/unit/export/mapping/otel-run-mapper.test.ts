import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_MAPPING_OPTIONS,
  DEFAULT_MAPPING_SWITCHES,
  type MappingOptions,
  type MappingSwitch,
  mappingSwitchesFrom,
} from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { Attributes, type JsonObject } from '../../../../src/record/attributes.js';
import type { TelemetryRecord } from '../../../../src/record/telemetry-record.js';
import { itemsOf, type MappedItem } from '../../../fake/mapped-items.js';
import { end, idOf, log, logged, start } from './made-records.js';
import { mapRun, namedSpan, nodeSpan, pushRecords } from './mapped-run.js';
import { asOtlp, readLog } from './read-sample.js';

const mapper = (options: Partial<MappingOptions> = {}) => new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, ...options });
const spanIds = (items: readonly MappedItem[]) =>
  items.flatMap((item) => (item.signal === 'traces' ? [Number.parseInt(item.span.spanContext().spanId, 16)] : []));
const off = (...names: MappingSwitch[]) => mappingSwitchesFrom(Object.fromEntries(names.map((name) => [name, false])));

describe('a span', () => {
  it('is held until the records are two seconds past its end', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 1, atMs: 0 }), log({ id: 2, atMs: 2000 })]));
    expect(spanIds(itemsOf(subject.take(false)))).toEqual([]);
    expect(subject.bufferedCount).toBe(1);
    pushRecords(subject, logged([log({ id: 2, atMs: 2001 })]));
    expect(spanIds(itemsOf(subject.take(false)))).toEqual([1]);
    expect(subject.bufferedCount).toBe(0);
  });

  it('is ready at once when the log is quiet', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 1, atMs: 0 }), end({ id: 2, atMs: 1 })]));
    expect(spanIds(itemsOf(subject.take(true)))).toEqual([1, 2]);
    expect(itemsOf(subject.take(true))).toEqual([]);
  });

  it('leaves early when too many are held, oldest first', () => {
    const subject = mapper({ maxBufferedSpans: 2 });
    pushRecords(subject, logged([1, 2, 3, 4].map((id) => end({ id, atMs: id }))));
    expect(spanIds(itemsOf(subject.take(false)))).toEqual([1, 2]);
    expect(subject.bufferedCount).toBe(2);
  });

  it('is exported once, however often its end was logged', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 1, atMs: 0 }), end({ id: 1, atMs: 0 }), start({ id: 1, atMs: 0 })]));
    expect(spanIds(itemsOf(subject.take(true)))).toEqual([1]);
  });
});

describe('a log record', () => {
  it('is an event of its span when it comes while that is held', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 1, atMs: 0 }), log({ id: 1, atMs: 1 })]));
    const [item] = itemsOf(subject.take(true)).filter((one) => one.signal === 'traces');
    expect(item?.span.events).toMatchObject([
      { name: 'LogMessage', attributes: { body: 'error', severity_text: 'INFO', severity_number: 9 } },
    ]);
  });

  it('goes to the nearest ancestor not yet sent when its span was sent', () => {
    const subject = mapper();
    pushRecords(
      subject,
      logged([start({ id: 1, atMs: 0 }), start({ id: 2, parent: 1, atMs: 0 }), end({ id: 3, parent: 2, atMs: 1 })]),
    );
    pushRecords(subject, logged([end({ id: 2, parent: 1, atMs: 2 })]));
    expect(spanIds(itemsOf(subject.take(true)))).toEqual([3, 2]);
    pushRecords(subject, logged([log({ id: 3, atMs: 9 }), end({ id: 1, atMs: 10 })]));
    const [item] = itemsOf(subject.take(true)).filter((one) => one.signal === 'traces');
    expect(item?.span.events.map((event) => event.attributes?.['run_bridge.event.span_id'])).toEqual([idOf(3)]);
  });

  it('waits for an ancestor that did not come yet when all below that were sent', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 3, parent: 2, atMs: 1 }), end({ id: 2, parent: 1, atMs: 2 })]));
    itemsOf(subject.take(true));
    pushRecords(subject, logged([log({ id: 3, atMs: 1 }), end({ id: 1, atMs: 10 })]));
    const [item] = itemsOf(subject.take(true)).filter((one) => one.signal === 'traces');
    expect(item?.span.events.map((event) => event.attributes?.['run_bridge.event.span_id'])).toEqual([idOf(3)]);
  });

  it('is a log record alone when only the span of another service is above the invocation', () => {
    const subject = mapper();
    const invocation = { id: 2, parent: 1, type: 'invocation.Invocation' };
    pushRecords(subject, logged([end({ id: 3, parent: 2, atMs: 1 }), end({ ...invocation, atMs: 2 })]));
    itemsOf(subject.take(true));
    pushRecords(subject, logged([log({ id: 3, atMs: 1 }), end({ id: 1, atMs: 10 })]));
    const [item] = itemsOf(subject.take(true)).filter((one) => one.signal === 'traces');
    expect(item?.span.events).toEqual([]);
  });

  it('is a log record alone when nothing above it is left', () => {
    const subject = mapper();
    pushRecords(subject, logged([end({ id: 1, atMs: 0 })]));
    itemsOf(subject.take(true));
    pushRecords(subject, logged([log({ id: 1, atMs: 9 })]));
    expect(itemsOf(subject.take(true)).map((item) => item.signal)).toEqual(['logs']);
  });

  it('beyond a span’s room is counted as dropped', () => {
    const subject = mapper({ maxEventsPerSpan: 2 });
    pushRecords(subject, logged([...[1, 2, 3, 4].map((ms) => log({ id: 1, atMs: ms })), end({ id: 1, atMs: 5 })]));
    const [item] = itemsOf(subject.take(true)).filter((one) => one.signal === 'traces');
    expect([item?.span.events.length, item?.span.droppedEventsCount]).toEqual([2, 2]);
  });

  it('without a span is a log record alone', () => {
    const subject = mapper();
    const record = log({ id: 1, atMs: 1 });
    pushRecords(subject, logged([record.recordType === 'LogRecord' ? { ...record, spanId: null } : record]));
    const [item] = itemsOf(subject.take(true));
    expect(item?.signal === 'logs' ? item.log.spanContext : 'none').toBeUndefined();
  });
});

describe('what comes out', () => {
  it('does not depend on how the log is cut into pushes', () => {
    const records = asOtlp(readLog('samples/interrupted/otel.jsonl'));
    const options = { ...DEFAULT_MAPPING_OPTIONS, eventHoldMs: 5 };
    const whole = new OtelRunMapper(options);
    pushRecords(whole, records);
    const expected = JSON.stringify(plain(itemsOf(whole.take(true))));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: records.length }), { maxLength: 8 }), (cuts) => {
        const subject = new OtelRunMapper(options);
        const items: MappedItem[] = [];
        let from = 0;
        for (const cut of [...cuts.sort((a, b) => a - b), records.length]) {
          pushRecords(subject, records.slice(from, cut));
          items.push(...itemsOf(subject.take(false)));
          from = cut;
        }
        items.push(...itemsOf(subject.take(true)));
        expect(JSON.stringify(plain(items))).toBe(expected);
      }),
      { numRuns: 20 },
    );
  });

  it('has one resource and one scope, with the overrides of the bridge', () => {
    const run = mapRun(readLog('samples/build-clean/otel.jsonl'), {
      resourceOverrides: { 'service.name': 'nightly', 'deployment.environment.name': 'prod' },
    });
    const resources = new Set([...run.spans, ...run.logs].map((one) => one.resource));
    const scopes = new Set([...run.spans, ...run.logs].map((one) => one.instrumentationScope));
    expect([resources.size, scopes.size]).toEqual([1, 1]);
    expect([...resources][0]?.attributes).toEqual({
      'service.name': 'nightly',
      'service.version': '2.0.0-alpha.4',
      'deployment.environment.name': 'prod',
      'telemetry.distro.name': 'run-bridge',
    });
    expect([...scopes][0]?.name).toBe('dbt-core');
  });

  it('keeps what the schema does not know', () => {
    const unknown = end({
      id: 1,
      atMs: 1,
      type: 'new.Thing',
      name: 'New thing (3)',
      attributes: { a: { b: [1, { c: true }] } },
    });
    const [span] = mapRun(logged([unknown]), { redaction: 'off' }).spans;
    expect(span?.attributes).toMatchObject({
      event_type: 'v1.public.events.fusion.new.Thing',
      'a.b': '[1,{"c":true}]',
    });
    expect(span?.name).toBe('New thing');
  });

  it('survives hostile nesting', () => {
    const deep = Attributes.fromJson(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`);
    const record = { ...end({ id: 1, atMs: 1, type: 'new.Thing' }), attributes: deep };
    for (const redaction of ['literals', 'off'] as const) {
      const [span] = mapRun(logged([record]), { redaction }).spans;
      expect(String(span?.attributes.a).length).toBeLessThan(200);
    }
  });

  it('marks stale sources, warned and failed', () => {
    const sources = ['WARNED', 'FAILED', 'PASSED'].map((outcome, id) =>
      end({
        id: id + 1,
        atMs: id,
        type: 'node.NodeProcessed',
        name: 'Node processed (source.shop.ext.raw)',
        attributes: {
          node_outcome: 'NODE_OUTCOME_SUCCESS',
          node_freshness_outcome: {
            ...(outcome === 'PASSED' ? {} : { node_freshness_outcome: `SOURCE_FRESHNESS_OUTCOME_OUTCOME_${outcome}` }),
            age_seconds: '90000',
          },
        },
      }),
    );
    const { spans } = mapRun(logged(sources));
    expect(spans.map((span) => span.status)).toEqual([
      { code: 2, message: 'stale source (warned), 90000 s old' },
      { code: 2, message: 'stale source (failed), 90000 s old' },
      { code: 1 },
    ]);
    expect(spans.map((span) => span.attributes['error.type'])).toEqual(['source_stale', 'source_stale', undefined]);
    expect(spans[2]?.attributes).toMatchObject({
      node_freshness_outcome: 'SOURCE_FRESHNESS_OUTCOME_OUTCOME_PASSED',
      age_seconds: 90000,
    });
  });
});

describe('two commands in one trace that run the same node', () => {
  const node = (id: number, parent: number, fromMs: number, atMs: number, attributes: JsonObject) =>
    end({ id, parent, fromMs, atMs, type: 'node.NodeProcessed', name: 'Node processed', attributes });
  const failed = { unique_id: 'model.a', node_outcome: 'NODE_OUTCOME_ERROR' };
  const skipped = {
    unique_id: 'model.b',
    node_outcome: 'NODE_OUTCOME_SKIPPED',
    node_skip_upstream_detail: { upstream_unique_id: 'model.a' },
  };
  const records = logged([
    log({ id: 90, atMs: 5, attributes: { unique_id: 'model.a', code_name: 'First' } }),
    log({ id: 91, atMs: 15, attributes: { unique_id: 'model.a', code_name: 'Second' } }),
    node(11, 1, 0, 10, failed),
    node(21, 2, 11, 20, failed),
    node(12, 1, 10, 21, skipped),
    node(22, 2, 20, 22, skipped),
  ]).map((one) => ({ ...one, record: asError(one.record) }));
  const { spans } = mapRun(records);
  const byId = (id: number) => spans.find((span) => span.spanContext().spanId === idOf(id));

  it('have each its own error', () => {
    expect([byId(11), byId(21)].map((span) => span?.attributes['error.type'])).toEqual(['First', 'Second']);
  });

  it('have each the cause of their own skips', () => {
    expect([byId(12), byId(22)].map((span) => span?.links[0]?.context.spanId)).toEqual([idOf(11), idOf(21)]);
  });
});

describe('a switch', () => {
  const records = readLog('samples/build-mixed/otel.jsonl');
  const mixed = (...names: MappingSwitch[]) => mapRun(records, { switches: off(...names) });

  it('is on by default, each', () => {
    expect(Object.values(DEFAULT_MAPPING_SWITCHES)).not.toContain(false);
  });

  it('turns span events off', () => {
    const run = mixed('events', 'verdicts');
    expect(run.spans.flatMap((span) => span.events)).toEqual([]);
    expect(run.logs.length).toBeGreaterThan(0);
  });

  it('leaves failed tests as the engine reports them', () => {
    const span = nodeSpan(mixed('verdicts'), 'test.shop.status_strict.0c25ec6282');
    expect(span.status).toEqual({ code: 1 });
    expect(span.attributes).not.toHaveProperty(['error.type']);
  });

  it('leaves failed nodes as the engine reports them', () => {
    expect(nodeSpan(mixed('verdicts'), 'model.shop.broken').status).toEqual({ code: 2, message: 'error' });
  });

  it('leaves nested details as JSON text', () => {
    const { attributes } = nodeSpan(mixed('attributes'), 'test.shop.status_strict.0c25ec6282');
    expect(attributes.node_test_detail).toBe('{"failing_rows":1,"test_outcome":"TEST_OUTCOME_FAILED"}');
  });

  it('leaves names as they are', () => {
    expect(namedSpan(mixed('names'), 'Phase: RUN (nodes: 21)').attributes).not.toHaveProperty([
      'run_bridge.span.original_name',
    ]);
  });

  it('leaves skipped nodes without links', () => {
    expect(nodeSpan(mixed('verdicts'), 'model.shop.after_broken').links).toEqual([]);
  });

  it('leaves queries with their own attributes alone', () => {
    const query = mixed('attributes').spans.find((span) => span.name.startsWith('Query executed'));
    expect(Object.keys(query?.attributes ?? {}).filter((name) => name.startsWith('db.'))).toEqual([]);
    expect(query?.attributes.sql).toContain('?');
  });

  it('leaves interrupted nodes as the engine reports them', () => {
    const run = mapRun(readLog('samples/interrupted/otel.jsonl'), { switches: off('verdicts') });
    expect(nodeSpan(run, 'model.shop.slow_a').status).toEqual({ code: 1 });
  });

  it('leaves the query time out', () => {
    const { attributes } = nodeSpan(mixed('attributes'), 'model.shop.revenue');
    expect(attributes).not.toHaveProperty(['run_bridge.node.query_time_ms']);
  });
});

function asError(record: TelemetryRecord): TelemetryRecord {
  return record.recordType === 'LogRecord' ? { ...record, severityNumber: 17 } : record;
}

function plain(items: readonly MappedItem[]): unknown {
  return items
    .map((item) =>
      item.signal === 'traces'
        ? { at: item.anchorOffset, id: item.span.spanContext(), events: item.span.events, a: item.span.attributes }
        : { at: item.anchorOffset, body: item.log.body },
    )
    .sort((a, b) => a.at - b.at);
}
