import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { itemsOf } from '../../../fake/mapped-items.js';
import { casesOf, recordedErrors, traceOfCase } from '../../../tool/error-runs.js';
import { mapRun, nodeSpan, pushRecords } from './mapped-run.js';
import { loggedLines, readLog } from './read-sample.js';

const mixed = readLog('samples/build-mixed/otel.jsonl');

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
    mapper.setOrigins([{ stepId: 'a', runId: 1_001, job: 'nightly', environment: 'prod' }]);
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
