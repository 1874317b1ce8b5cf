import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  DEFAULT_MAPPING_OPTIONS,
  MAPPING_SWITCHES,
  type MappingOptions,
  mappingSwitchesFrom,
} from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { SharedMapping } from '../../../../src/export/mapping/shared-mapping.js';
import { LAYOUT_CONSTANTS } from '../../../../src/record/arena.js';
import { ALL_FIELDS } from '../../../../src/record/event-table.js';
import { texts } from '../../../../src/record/texts.js';
import { itemsOf, type MappedItem } from '../../../fake/mapped-items.js';
import { propertyRuns } from '../../../tool/property-runs.js';
import { idOf, type LineParts, lineOf, linkTo, nanosOf, sampleParts, startOf, timesOf } from './cell-lines.js';
import { cut, finish, type MappedBytes, mapBlankLines } from './mapped-bytes.js';

const PARTS = sampleParts();
/** Names that the mapping looks at, gives itself, or may stumble over. */
const ODD_NAMES =
  `unique_id name adapter_type sql sql_hash query_outcome node_outcome node_test_detail node_freshness_outcome
  node_skip_upstream_detail node_outcome_detail rows_affected phase last_phase database schema error.type event_type db.system.name
  db.query.text 1 __proto__ body severity_text extra extra.a a a.b a.b.c display constructor test.case.name run_bridge.x raw_command
  query_error_vendor_code diff_table relative_path message sql.a test_outcome code`.split(/\s+/);
const NAMES = [...ODD_NAMES, ...ODD_NAMES, ...ALL_FIELDS.map(([name]) => name)];
const WORDS = [
  'zebra',
  'okapi',
  'model.shop.zebra',
  'test.shop.okapi.1a2b',
  'unit_test.shop.zebra.okapi',
  'shop',
  'duckdb',
  'mysql',
];
const TEXTS = [
  ...WORDS,
  ...[
    '',
    '?',
    '1',
    '007',
    '12345678901234567',
    '-5',
    'é zebra ✓ 𝒳',
    "of 'okapi' and zebra",
    'lines of okapi\nand "zebra"',
    '\ud800 zebra',
  ],
  ...[
    '{"a":1}',
    ' {"upstream_unique_id":"model.shop.zebra"}',
    '[',
    `${'zebra 1 '.repeat(40)}`,
    'Canceled',
    'snowflake',
    'bigquery',
  ],
  ...[
    "select okapi from shop.zebra where a = 'x'",
    'create table "zebra"."okapi__dbt_tmp" as select `a` -- b',
    'select "okapi',
  ],
  ...[
    'NODE_OUTCOME_SUCCESS',
    'NODE_OUTCOME_SKIPPED',
    'NODE_OUTCOME_ERROR',
    'QUERY_OUTCOME_SUCCESS',
    'QUERY_OUTCOME_CANCELED',
  ],
  ...['EXECUTION_PHASE_RUN', 'EXECUTION_PHASE_COMPILE', 'TEST_OUTCOME_FAILED', 'SOURCE_FRESHNESS_OUTCOME_FAILED'],
];
const LONG_TEXTS = [`${'of zebra '.repeat(8_000)}`, `select '${'é'.repeat(40_000)}' from okapi`, 'n'.repeat(300_000)];

const text = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
);
const scalar = fc.oneof(
  text,
  fc.constantFrom<unknown>(0, 7, 300, 2 ** 28 - 1, 2 ** 28, -1, 1.5, 1404, true, false, null),
);
const nested = fc.letrec<{ value: unknown; object: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    { weight: 3, arbitrary: scalar },
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc
    .array(
      fc.tuple(
        fc.constantFrom('a', 'b', 'test_outcome', 'upstream_unique_id', 'node_freshness_outcome', 'name', ...NAMES),
        tie('value'),
      ),
      {
        maxLength: 4,
      },
    )
    // As the parser of JSON makes it: `__proto__` is a member as well.
    .map((members) =>
      JSON.parse(`{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`),
    ),
}));
const value = fc.oneof(
  { weight: 40, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom(...LONG_TEXTS) },
  { weight: 15, arbitrary: scalar },
  { weight: 15, arbitrary: nested.object },
  { weight: 5, arbitrary: nested.value },
);
const small = fc.nat(9);
const time = fc.oneof(fc.nat(100), fc.nat(10_000));

/** What is changed about a line. */
const change = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.tuple(fc.constantFrom(...NAMES), value).map(([name, json]) => ({ set: { [name]: json } })),
  },
  { weight: 4, arbitrary: fc.tuple(fc.nat(30), value).map(([index, json]) => ({ replace: index, by: json })) },
  { weight: 2, arbitrary: fc.nat(30).map((remove) => ({ remove })) },
  { weight: 1, arbitrary: fc.nat(30).map((keep) => ({ keep })) },
  fc.tuple(small, small).map(([id, parent]) => ({ head: { parent_span_id: idOf(id + 1), links: linkTo(parent + 1) } })),
  fc
    .constantFrom<unknown>(
      null,
      { message: null, code: 1 },
      { message: 'of zebra', code: 2 },
      { message: 'x', code: 1 },
    )
    .map((status) => ({ head: { status } })),
  text.map((body) => ({ head: { body } })),
  fc
    .constantFrom('x.Unknown', `x.${'Long'.repeat(40)}`, 'Log.', 'v1.public.events.fusion.log.LogMessage')
    .map((event_type) => ({ head: { event_type } })),
  fc.constantFrom(1, 9, 13, 17, 24, 25).map((severity_number) => ({ head: { severity_number } })),
);
const made = fc.record({
  part: fc.nat(),
  changes: fc.array(change, { maxLength: 3 }),
  id: small,
  parent: small,
  startMs: time,
  tookMs: time,
  /** A start is mostly the line before. */
  start: fc.constantFrom('before', 'before', 'before', 'none', 'alone', 'first'),
  isRepeated: fc.nat(9).map((one) => one === 0),
});
type Made = typeof made extends fc.Arbitrary<infer M> ? M : never;

function partsOf({ part, changes, id, parent, startMs, tookMs }: Made): LineParts {
  const base = PARTS[part % PARTS.length];
  if (base === undefined) throw new Error('no samples');
  const isLog = base.head.record_type === 'LogRecord';
  let head: Record<string, unknown> = {
    ...base.head,
    span_id: idOf(id + 1),
    ...(isLog
      ? { time_unix_nano: nanosOf(startMs) }
      : { ...timesOf(startMs, startMs + tookMs), parent_span_id: parent === 0 ? null : idOf(parent) }),
  };
  const attributes = new Map(base.attributes);
  for (const one of changes) {
    const names = [...attributes.keys()];
    if ('set' in one) for (const [name, json] of Object.entries(one.set)) attributes.set(name, JSON.stringify(json));
    else if ('replace' in one) attributes.set(names[one.replace % names.length] ?? 'a', JSON.stringify(one.by));
    else if ('remove' in one) attributes.delete(names[one.remove % names.length] ?? '');
    else if ('keep' in one) for (const name of names.slice(one.keep % 4)) attributes.delete(name);
    else {
      const known = Object.entries(one.head).filter(
        ([name]) => name in head && (isLog || !/event_type|severity/.test(name)),
      );
      head = { ...head, ...Object.fromEntries(known) };
    }
  }
  return { head, attributes };
}

function logOf(all: readonly Made[]): Buffer {
  const first: string[] = [];
  const lines: string[] = [];
  for (const one of all) {
    const parts = partsOf(one);
    const isSpan = parts.head.record_type === 'SpanEnd';
    if (isSpan && one.start === 'first') first.push(startOf(parts));
    else if (isSpan && one.start !== 'none') lines.push(startOf(parts));
    if (isSpan && one.start === 'alone') continue;
    lines.push(lineOf(parts));
    if (one.isRepeated) lines.push(lineOf(parts));
  }
  return Buffer.from([...first, ...lines].join(''));
}

const options = fc.record({
  redaction: fc.constantFrom('literals' as const, 'literals' as const, 'statements' as const, 'off' as const),
  switches: fc
    .subarray(Object.keys(MAPPING_SWITCHES), { maxLength: 5 })
    .map((off) => mappingSwitchesFrom(Object.fromEntries(off.map((name) => [name, false])))),
  maxBufferedSpans: fc.constantFrom(0, 1, 3, 10, 8192),
  eventHoldMs: fc.constantFrom(0, 1, 50, 2000),
});
const runs = fc.array(fc.array(made, { minLength: 1, maxLength: 14 }), { minLength: 1, maxLength: 2 });
const between = fc.array(fc.constantFrom('nothing', 'nothing', 'texts', 'layouts'), { minLength: 1, maxLength: 4 });

/** Maps logs in turns, a push of each, with what is made of texts in common. */
function mapInTurns(
  logs: readonly Buffer[],
  changed: Partial<MappingOptions>,
  cuts: readonly number[],
  events: readonly string[],
): readonly MappedBytes[] {
  const all = { ...DEFAULT_MAPPING_OPTIONS, ...changed };
  const shared = new SharedMapping(all.redaction);
  const turns = logs.map((log) => ({
    log,
    mapper: new OtelRunMapper(all, shared),
    pushes: cut(log, cuts),
    items: [] as MappedItem[],
  }));
  for (let round = 0, isOver = false; !isOver; round++) {
    isOver = true;
    for (const { mapper, pushes, items } of turns) {
      const { value: push } = pushes.next();
      if (push !== undefined) {
        isOver = false;
        mapper.pushLines(push);
        push.lines.fill(0x5a);
        items.push(...itemsOf(mapper.take(false)));
      }
      forget(events[round % events.length]);
    }
  }
  return turns.map(({ mapper, log, items }) => finish(mapper, log, items));
}

function forget(event: string | undefined): void {
  if (event === 'texts') texts.forgetAll();
  else if (event === 'layouts') LAYOUT_CONSTANTS.clear();
}

it('runs of any look give the same whether they are mapped from cells or by plain code', () => {
  fc.assert(
    fc.property(
      runs,
      options,
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
      between,
      (all, changed, cuts, events) => {
        const logs = all.map(logOf);
        const mapped = mapInTurns(logs, changed, cuts, events);
        expect(mapped).toEqual(logs.map((log) => mapBlankLines(log, changed)));
      },
    ),
    { numRuns: propertyRuns(600) },
  );
});
