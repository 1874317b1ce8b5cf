import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAPPING_SWITCHES, mappingSwitchesFrom } from '../../../../src/config/mapping-options.js';
import { EventMappings } from '../../../../src/export/lines/event-mappings.js';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import { propertyRuns } from '../../../tool/property-runs.js';
import { mapBlankLines, mapLines } from './mapped-bytes.js';

const TRACE = '01a1fb8ea78d7281ae8c1be536b674cd';
const V1 = 'v1.public.events.fusion.';
const TYPES = [
  'node.NodeProcessed',
  'node.NodeEvaluated',
  'node.MicrobatchEvaluated',
  'hook.HookProcessed',
  'query.QueryExecuted',
  'phase.PhaseExecuted',
  'asset.AssetParsed',
  'invocation.Invocation',
  'process.Process',
  'made.Up',
].map((type) => V1 + type);

const word = fc.constantFrom(
  'orders',
  'model.shop.orders',
  'Database Error in orders 4711',
  'm1',
  '88',
  '',
  '007',
  '12.5',
);
/** Mostly the first, now and then another. */
const mostly = <T>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<T>, weight = 20): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: usual }, unusual);
const text = fc.oneof(
  { weight: 30, arbitrary: word },
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.constantFrom('x'.repeat(90), 'y'.repeat(300), 'with "quotes"', 'ü', '\u007f', '\ud800', 'select 1 -- a'),
);
const scalar = fc.oneof(
  text,
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const json = fc
  .oneof(
    { weight: 8, arbitrary: scalar },
    fc.array(fc.oneof(text, scalar), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('test_outcome', 'failing_rows', 'name', 'sql', 'error.type', 'deep', '7'), scalar, {
      maxKeys: 3,
    }),
    fc.constant({ deep: { deeper: [{ name: 'secret' }], count: '5' } }),
  )
  .map((value) => JSON.stringify(value));
const spelling = fc.oneof(
  { weight: 8, arbitrary: json },
  fc.constantFrom(
    '1.0',
    '1e3',
    '-0',
    '0',
    '-5',
    '123456789012345',
    '1234567890123456',
    '99999999999999999999',
    '"\\u0041"',
    '{ }',
    '[ 1 ]',
  ),
);
const key = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.constantFrom(
      'unique_id',
      'name',
      'database',
      'schema',
      'phase',
      'adapter_type',
      'sql',
      'sql_hash',
      'duration_ms',
      'node_outcome',
      'test_outcome',
      'failing_rows',
      'node_test_detail',
      'node_freshness_outcome',
      'node_evaluation_detail',
      'node_cache_detail',
      'node_outcome_detail',
      'node_skip_upstream_detail',
      'node_error_type',
      'query_outcome',
      'hook_outcome',
      'target',
      'extra',
      'query_error_vendor_code',
      'query_error_adapter_message',
      '_debug_info',
      'raw_command',
      'diff_table',
      'content',
      'nested',
      'nested.deep',
      'eval_args',
      'age_seconds',
    ),
  },
  fc.constantFrom(
    'event_type',
    'error.type',
    'run_bridge.x',
    'db.query.text',
    '__proto__',
    '12',
    'a"b',
    'k\u00e9y',
    'constructor',
    '',
  ),
  fc.string({ maxLength: 8 }),
);
const outcome = fc.constantFrom('SUCCESS', 'ERROR', 'SKIPPED', 'CANCELED', 'UNSPECIFIED');
const attribute = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(key, spelling) },
  fc.tuple(
    fc.constant('node_outcome'),
    outcome.map((one) => `"NODE_OUTCOME_${one}"`),
  ),
  fc.tuple(
    fc.constant('query_outcome'),
    outcome.map((one) => `"QUERY_OUTCOME_${one}"`),
  ),
  fc.tuple(
    fc.constant('node_test_detail'),
    fc.constantFrom(
      '{}',
      '{"test_outcome":"TEST_OUTCOME_FAILED","failing_rows":3}',
      '{"test_outcome":"TEST_OUTCOME_WARNED"}',
    ),
  ),
  fc.tuple(fc.constant('unique_id'), fc.constantFrom('"model.shop.a"', '"model.shop.b"')),
);
/** Attributes in which a name comes twice are put together; so it rarely does. */
const attributes = mostly(
  fc.uniqueArray(attribute, { maxLength: 9, selector: ([name]) => name }),
  fc.array(attribute, { maxLength: 9 }),
).map((list) => `{${list.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`);
const id = fc.integer({ min: 1, max: 20 }).map((number) => number.toString(16).padStart(16, '0'));
const time = mostly(
  fc.integer({ min: 0, max: 6000 }).map((ms) => `${1_700_000_000_000 + ms}000000`),
  fc.constantFrom('5', '999999999', '1000000001', '9223372036854775807', '01700000000000000001'),
);
const status = fc.oneof(
  fc.constantFrom(
    'null',
    '{"message":null,"code":1}',
    '{"message":"","code":2}',
    '{"message":null,"code":2}',
    '{"message":null,"code":0}',
  ),
  text.map((message) => `{"message":${JSON.stringify(message)},"code":2}`),
);
const link = fc
  .tuple(id, mostly(fc.constant('{}'), fc.constant('{"name":"a"}')))
  .map(([span, own]) => `{"trace_id":"${TRACE}","span_id":"${span}","attributes":${own}}`);
const links = fc.oneof(
  fc.constant('null'),
  fc.array(link, { maxLength: 2 }).map((list) => `[${list.join(',')}]`),
);
const nullable = (one: fc.Arbitrary<string>) => fc.option(one).map((value) => JSON.stringify(value));
const severity = mostly(
  fc.constantFrom('9,"severity_text":"INFO"', '17,"severity_text":"ERROR"', '0,"severity_text":""'),
  fc.constant('100,"severity_text":"\\n"'),
);

const spanLine = fc
  .record({
    kind: fc.constantFrom('SpanStart', 'SpanEnd', 'SpanEnd'),
    trace: mostly(fc.constant(TRACE), fc.constant(TRACE.replaceAll('1', '2'))),
    id,
    name: text,
    parent: nullable(id),
    links,
    from: time,
    to: time,
    severity,
    status,
    type: fc.constantFrom(...TYPES),
    attributes,
  })
  .map((span) => {
    const isEnd = span.kind === 'SpanEnd';
    const head = `{"record_type":"${span.kind}","trace_id":"${span.trace}","span_id":"${span.id}","span_name":${JSON.stringify(span.name)}`;
    const times = `"start_time_unix_nano":"${span.from}"${isEnd ? `,"end_time_unix_nano":"${span.to}"` : ''}`;
    const tail = `${isEnd ? `"status":${span.status},` : ''}"event_type":"${span.type}","attributes":${span.attributes}}`;
    return `${head},"parent_span_id":${span.parent},"links":${span.links},${times},"severity_number":${span.severity},${tail}`;
  });
const interruption = fc.constantFrom(
  '{"code":1404,"unique_id":"model.shop.a"}',
  '{"code":1001,"code_name":"DbDriverFailed","unique_id":"model.shop.b"}',
);
const logLine = fc
  .record({ id: nullable(id), body: text, time, severity, attributes: fc.oneof(attributes, interruption) })
  .map(
    (log) =>
      `{"record_type":"LogRecord","trace_id":"${TRACE}","span_id":${log.id},"span_name":null,"event_id":null,"time_unix_nano":"${log.time}","severity_number":${log.severity},"body":${JSON.stringify(log.body)},"event_type":"${V1}log.LogMessage","attributes":${log.attributes}}`,
  );
/** The same record in another layout, which is written anew first. */
const relaidLine = spanLine.map((line) => line.replace(',"links"', ', "links"'));
const line = fc.oneof(
  { weight: 20, arbitrary: spanLine },
  { weight: 3, arbitrary: logLine },
  mostly(relaidLine, fc.constantFrom('', '{}', 'damaged'), 2),
);
const first = `{"record_type":"LogRecord","trace_id":"${TRACE}","span_id":null,"span_name":null,"event_id":null,"time_unix_nano":"1","severity_number":1,"severity_text":"TRACE","body":"","event_type":"x","attributes":{}}`;

it('lines give the same bytes whether attributes are copied or put together, whatever is in them, however they are cut, at every level and switch', () => {
  const level = fc.constantFrom<RedactionLevel>('literals', 'statements', 'off');
  const off = fc.subarray(Object.keys(MAPPING_SWITCHES), { maxLength: 3 });
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 });
  const sizes = fc.constantFrom({}, { maxHeldSpans: 3, maxRememberedSpans: 3, maxEventsPerSpan: 1, eventHoldMs: 700 });
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 25 }),
      level,
      off,
      cuts,
      sizes,
      (lines, redaction, names, pieces, small) => {
        const log = Buffer.from([first, ...lines].map((one) => `${one}\n`).join(''));
        const switches = mappingSwitchesFrom(Object.fromEntries(names.map((name) => [name, false])));
        const options = { redaction, switches, ...small };
        const together = mapBlankLines(log, options);
        expect(mapLines(log, options, pieces)).toEqual(together);
        const mappings = new EventMappings();
        // The second time, all event types and attributes are known.
        expect(mapLines(log, options, pieces, mappings)).toEqual(together);
        expect(mapLines(log, options, pieces, mappings)).toEqual(together);
      },
    ),
    { numRuns: propertyRuns(400) },
  );
});
