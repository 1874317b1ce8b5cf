import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { Attributes } from '../../../../src/record/attributes.js';
import type { TelemetryRecord } from '../../../../src/record/telemetry-record.js';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import type { InvocationSummary } from '../../../../src/run/verdict.js';
import { isTestId } from '../../../../src/storage/manifest.js';
import { itemsOf } from '../../../fake/mapped-items.js';
import { casesOf, recordedErrors, traceOfCase } from '../../../tool/error-runs.js';
import { invocationSummary, type MappedRun, mapRun, nodeSpan, pushRecords, spanId } from './mapped-run.js';
import { asOtlp, ENGINE, loggedLines, readLog } from './read-sample.js';

const mixed = readLog('samples/build-mixed/otel.jsonl');
const overlapping = readLog('samples/overlapping/otel.jsonl');
/** What the run model says of its two commands. */
const ofOverlapping = [
  invocationSummary({ spanId: spanId('8f7dc31e89fd9b4c'), hasInvocationEnd: true, verdict: 'success' }),
  invocationSummary({ spanId: spanId('58d10df7780334d0'), verdict: 'error' }),
];
/** Whose a run is. */
const SCOPE = { accountId: 1, jobId: 1, environmentId: 1 };
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];

function invocationsOf({ spans }: Pick<MappedRun, 'spans'>) {
  return spans.filter(({ name }) => name.startsWith('dbt invocation'));
}

/** Attributes of the one command of a run whose names begin so. */
function commandOf(run: Pick<MappedRun, 'spans'>, prefix: string) {
  const [span, ...others] = invocationsOf(run);
  expect(others).toEqual([]);
  return Object.fromEntries(Object.entries(span?.attributes ?? {}).filter(([name]) => name.startsWith(prefix)));
}

describe('what an on-call engineer filters by', () => {
  it("is a failed query's class, which stands in front of PostgreSQL's messages", () => {
    const [, first] = casesOf('postgres');
    const trace = first === undefined ? '' : traceOfCase(first);
    const log = loggedLines(recordedErrors('postgres')).filter(({ record }) => record.traceId === trace);
    const types = new Map(
      mapRun(log).spans.flatMap(({ name, attributes }) =>
        name.startsWith('Query executed') && attributes['error.type'] !== undefined
          ? [[attributes.unique_id, attributes['error.type']] as const]
          : [],
      ),
    );
    expect(types.get('model.shop.unique_index')).toBe('Integrity');
    expect(types.get('model.shop.missing_relation')).toBe('NotFound');
    expect(types.get('model.shop.cast_to_integer')).toBe('InvalidData');
    expect([...types.values()]).not.toContain('query_error');
  });

  it('is the result of a test', () => {
    const { spans } = mapRun(mixed);
    const results = spans.flatMap(({ name, attributes }) =>
      name.startsWith('Node processed') && attributes['test.case.name'] !== undefined
        ? [{ verdict: attributes['run_bridge.node.verdict'], status: attributes['test.case.result.status'] }]
        : [],
    );
    expect(results).toContainEqual({ verdict: 'success', status: 'pass' });
    expect(results).toContainEqual({ verdict: 'failed', status: 'fail' });
    expect(results).toContainEqual({ verdict: 'warned', status: 'pass' });
    const test = nodeSpan({ spans, items: [], logs: [] }, 'test.shop.no_negative');
    expect(test.attributes).toMatchObject({ 'test.case.name': 'no_negative' });
  });

  it('is the name of a unit test, with the version of the model that it tests', () => {
    const { spans } = mapRun(readLog('versions/otel.jsonl'));
    const names = spans.filter(({ name }) => name.startsWith('Node processed (unit_test.'));
    expect(names.map(({ attributes }) => attributes['test.case.name']).sort()).toEqual([
      'dim_is_a.v1',
      'dim_is_a.v2',
      'dim_is_b.v1',
    ]);
  });

  it('is the relation of a query, and what it does in a few words', () => {
    const queries = mapRun(mixed).spans.filter(({ attributes }) => attributes.unique_id === 'model.shop.stg_orders');
    const summaries = queries.map(({ attributes }) => attributes['db.query.summary']);
    expect(summaries.some((summary) => /^CREATE VIEW stg_orders SELECT \w+$/.test(String(summary)))).toBe(true);
    expect(queries.some(({ attributes }) => attributes['db.collection.name'] === 'stg_orders')).toBe(true);
    const hidden = mapRun(mixed, { redaction: 'statements' }).spans.map(({ attributes }) => attributes);
    expect(hidden.some((attributes) => 'db.collection.name' in attributes)).toBe(false);
  });

  it('is the run, from when it is known, unless a sender or a destination says otherwise', () => {
    const mapper = new OtelRunMapper({
      ...DEFAULT_MAPPING_OPTIONS,
      publicUrl: 'https://runs.example.com/',
      resourceOverrides: { 'service.name': 'nightly-shop' },
    });
    mapper.setOrigins([{ stepId: 'a', stepIndex: 1, runId: 1_001, ...SCOPE, job: 'nightly', environment: 'prod' }]);
    pushRecords(mapper, mixed);
    const [item] = itemsOf(mapper.take(true));
    const attributes = item?.signal === 'traces' ? item.span.resource.attributes : item?.log.resource.attributes;
    expect(attributes).toMatchObject({
      'cicd.pipeline.name': 'nightly',
      'cicd.pipeline.run.id': '1001',
      'deployment.environment.name': 'prod',
      'run_bridge.run.url': 'https://runs.example.com/runs/1001',
      'cicd.pipeline.run.url.full': 'https://runs.example.com/runs/1001',
      'service.name': 'nightly-shop',
    });
  });

  it('is how the run ended', () => {
    const invocation = mapRun(mixed).spans.find(({ name }) => name.startsWith('dbt invocation'));
    expect(invocation?.attributes['cicd.pipeline.result']).toBe('failure');
  });
});

describe('a command is a task of its run', () => {
  it('with its word, its span and its result, at every level of redaction and however it came', () => {
    for (const redaction of LEVELS) {
      for (const log of [mixed, asOtlp(mixed)]) {
        expect(commandOf(mapRun(log, { redaction }), 'cicd.')).toEqual({
          'cicd.pipeline.result': 'failure',
          'cicd.pipeline.task.name': 'build',
          'cicd.pipeline.task.run.id': 'afb5d096a1eb44cd',
          'cicd.pipeline.task.run.result': 'failure',
        });
      }
    }
    const clean = mapRun(readLog('samples/build-clean/otel.jsonl'));
    expect(commandOf(clean, 'cicd.pipeline.task.run.result')).toEqual({ 'cicd.pipeline.task.run.result': 'success' });
  });

  it('with its step and the page of that, where its resource names it, and nothing that its resource says already', () => {
    const ofStep = (attributes: Readonly<Record<string, string>>) => {
      const resource = { ...ENGINE, attributes: { ...ENGINE.attributes, ...attributes } };
      const log = mixed.map((one) => ({ ...one, resource }));
      const step = { runId: 1_001, ...SCOPE, job: 'nightly', environment: null };
      const run = mapRun(log, { publicUrl: 'https://runs.example.com/' }, undefined, (mapper) =>
        mapper.setOrigins([
          { ...step, stepId: 'first', stepIndex: 1 },
          { ...step, stepId: 'second', stepIndex: 2 },
        ]),
      );
      return commandOf(run, 'cicd.pipeline.task.');
    };
    expect(ofStep({ 'run_bridge.step.id': 'second' })).toEqual({
      'cicd.pipeline.task.name': 'build',
      'cicd.pipeline.task.run.id': 'second',
      'cicd.pipeline.task.run.result': 'failure',
      'cicd.pipeline.task.run.url.full': 'https://runs.example.com/runs/1001/nodes?step=2',
    });
    expect(
      ofStep({
        'run_bridge.step.id': 'first',
        'cicd.pipeline.task.name': '1',
        'cicd.pipeline.task.run.id': '70471',
      }),
    ).toEqual({
      'cicd.pipeline.task.run.result': 'failure',
      'cicd.pipeline.task.run.url.full': 'https://runs.example.com/runs/1001/nodes?step=1',
    });
    // Neither of two steps is it surely.
    expect(ofStep({})).not.toHaveProperty('cicd.pipeline.task.run.url.full');
  });

  it('with its own page only where the trace has no other command', () => {
    const urlsOf = (log: readonly LoggedRecord[], invocations: readonly InvocationSummary[]) => {
      const run = mapRun(log, { publicUrl: 'https://runs.example.com' }, invocations, (mapper) =>
        mapper.setOrigins([{ stepId: 'any', stepIndex: 1, runId: 7, ...SCOPE, job: 'nightly', environment: null }]),
      );
      return invocationsOf(run).map(({ attributes }) => attributes['cicd.pipeline.task.run.url.full']);
    };
    const url = 'https://runs.example.com/runs/7/nodes?step=1';
    expect(urlsOf(mixed, [])).toEqual([url]);
    expect(urlsOf(overlapping, ofOverlapping)).toEqual([undefined, undefined]);
  });

  it('also where its span never ended, by the verdict of the run', () => {
    const log = readLog('samples/interrupted/otel.jsonl');
    const id = log.find(({ record }) => record.spanName?.startsWith('dbt invocation'))?.record.spanId ?? null;
    for (const [verdict, result, status] of [
      ['canceled', 'cancellation', 'aborted'],
      ['error', 'failure', 'failure'],
      ['lost', 'error', undefined],
    ] as const) {
      for (const records of [log, asOtlp(log)]) {
        const run = mapRun(records, {}, [invocationSummary({ spanId: id, verdict })]);
        const attributes = commandOf(run, '');
        expect(attributes['cicd.pipeline.result']).toBe(result);
        expect(attributes['cicd.pipeline.task.run.result']).toBe(result);
        expect(attributes['cicd.pipeline.task.run.id']).toBe(id);
        expect(attributes['cicd.pipeline.task.name']).toBe('build');
        expect(attributes['test.suite.run.status']).toBe(status);
      }
    }
  });
});

describe('the tests of a package are a suite', () => {
  it('of which each test says the name, and the command what became of it', () => {
    for (const redaction of LEVELS) {
      for (const log of [mixed, asOtlp(mixed)]) {
        const run = mapRun(log, { redaction });
        expect(commandOf(run, 'test.')).toEqual({ 'test.suite.name': 'shop', 'test.suite.run.status': 'failure' });
        const tests = run.spans.filter(({ attributes }) => attributes['test.case.name'] !== undefined);
        expect(tests.length).toBeGreaterThan(5);
        for (const { attributes } of tests) expect(attributes['test.suite.name']).toBe('shop');
      }
    }
    const success = { 'test.suite.name': 'shop', 'test.suite.run.status': 'success' };
    expect(commandOf(mapRun(readLog('samples/build-clean/otel.jsonl')), 'test.')).toEqual(success);
    // It renders tests and executes none; and the other has none.
    expect(commandOf(mapRun(readLog('samples/compile/otel.jsonl')), 'test.')).toEqual({});
    expect(commandOf(mapRun(readLog('samples/parse/otel.jsonl')), 'test.')).toEqual({});
  });

  it('of the command that ran them, where a trace has several, and skipped where all were', () => {
    const skipped = mixed.map(({ record, ...rest }) => {
      const { node_test_detail: _detail, ...attributes } = record.attributes.value;
      const outcome = { ...attributes, node_outcome: 'NODE_OUTCOME_SKIPPED' };
      return { ...rest, record: isTestEnd(record) ? { ...record, attributes: Attributes.of(outcome) } : record };
    });
    expect(commandOf(mapRun(skipped), 'test.')).toEqual({
      'test.suite.name': 'shop',
      'test.suite.run.status': 'skipped',
    });
    const run = mapRun(overlapping, {}, ofOverlapping);
    const statuses = invocationsOf(run).map(({ attributes }) => attributes['test.suite.run.status']);
    expect(statuses).toEqual(['success', 'failure']);
  });

  it('and not said of the command where they are of several packages, or more than are remembered', () => {
    const first = mixed.findIndex(({ record }) => isTestEnd(record));
    const mine = mixed.map((one, at) => {
      const { record } = one;
      const uniqueId = String(record.attributes.value.unique_id).replace('.shop.', '.dbt_utils.');
      const attributes = Attributes.of({ ...record.attributes.value, unique_id: uniqueId });
      return at === first ? { ...one, record: { ...record, attributes } } : one;
    });
    const run = mapRun(mine);
    expect(commandOf(run, 'test.')).toEqual({});
    expect(run.spans.some(({ attributes }) => attributes['test.suite.name'] === 'dbt_utils')).toBe(true);
    const ended = mixed.filter(
      ({ record }) => isTestEnd(record) || (record.recordType === 'SpanEnd' && record.eventType.endsWith('Invocation')),
    );
    const statusWhere = (maxRememberedSpans: number) =>
      commandOf(mapRun(ended, { maxRememberedSpans }), 'test.')['test.suite.run.status'];
    expect(statusWhere(ended.length - 1)).toBe('failure');
    expect(statusWhere(ended.length - 2)).toBe(undefined);
  });

  it('of which a command says the same after a restart, when its tests were sent before', () => {
    const whole = mapRun(mixed);
    const last = mixed.findLast(({ record }) => record.eventType.endsWith('Invocation'));
    const mapper = new OtelRunMapper(DEFAULT_MAPPING_OPTIONS);
    mapper.skipTo(last?.offset ?? 0, last?.offset ?? 0);
    pushRecords(mapper, mixed);
    const spans = itemsOf(mapper.take(true)).flatMap((item) => (item.signal === 'traces' ? [item.span] : []));
    expect(spans.length).toBeLessThan(5);
    expect(commandOf({ spans }, '')).toEqual(commandOf(whole, ''));
  });
});

describe("the database's code of an error", () => {
  const codesOf = (log: readonly LoggedRecord[], redaction: RedactionLevel) =>
    new Map(
      mapRun(log, { redaction }).spans.flatMap(({ name, attributes }) => {
        const code = attributes['db.response.status_code'];
        return code === undefined ? [] : [[`${name.split(' (')[0]} ${attributes.unique_id}`, code] as const];
      }),
    );

  it('is the SQLSTATE behind the message of a node, as PostgreSQL gives it', () => {
    const [first] = casesOf('postgres');
    const trace = first === undefined ? '' : traceOfCase(first);
    const log = loggedLines(recordedErrors('postgres')).filter(({ record }) => record.traceId === trace);
    for (const redaction of LEVELS) {
      const codes = codesOf(log, redaction);
      expect(codes.get('Node processed model.shop.missing_relation')).toBe('42P01');
      expect(codes.get('Node evaluated model.shop.permission')).toBe('42501');
      for (const code of codes.values()) expect(code).toMatch(/^[0-9A-Z]{5}$/);
    }
  });

  it("is the vendor's on a query, where the engine gives one", () => {
    const withCode = (code: number | null) =>
      mixed.map(({ record, ...rest }) => {
        if (record.recordType !== 'SpanEnd' || record.attributes.text('query_outcome') !== 'QUERY_OUTCOME_ERROR')
          return { ...rest, record };
        const attributes = Attributes.of({ ...record.attributes.value, query_error_vendor_code: code });
        return { ...rest, record: { ...record, attributes } };
      });
    for (const redaction of LEVELS) {
      expect(new Set(codesOf(withCode(904), redaction).values())).toEqual(new Set(['904']));
      // The engine's word for none.
      expect(codesOf(withCode(-2_147_483_648), redaction).size).toBe(0);
    }
    const off = mapRun(withCode(904), { switches: { ...DEFAULT_MAPPING_OPTIONS.switches, attributes: false } });
    expect(off.spans.some(({ attributes }) => 'db.response.status_code' in attributes)).toBe(false);
  });
});

function isTestEnd({ recordType, eventType, attributes }: TelemetryRecord): boolean {
  const isEnd = recordType === 'SpanEnd' && eventType.endsWith('NodeProcessed');
  return isEnd && isTestId(attributes.text('unique_id') ?? '');
}
