import { expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { SharedMapping } from '../../../../src/export/mapping/shared-mapping.js';
import { LAYOUT_CONSTANTS } from '../../../../src/record/arena.js';
import { logLine, spanLine } from './cell-lines.js';
import { cut, finish, type MappedBytes, mapBlankLines, mapLines } from './mapped-bytes.js';

const UNKNOWN = 'x.Unknown';
const NODE = 'node.NodeProcessed';
const QUERY = 'query.QueryExecuted';
const SUCCESS = { node_outcome: 'NODE_OUTCOME_SUCCESS' };

/** Lines give the same from cells as by plain code, also where another run made something of their texts before. */
function expectSame(
  lines: readonly string[],
  options: Partial<MappingOptions> = {},
  before: readonly string[] = [],
): MappedBytes {
  const shared = new SharedMapping(options.redaction);
  if (before.length > 0) mapLines(Buffer.from(before.join('')), options, [1], shared);
  const log = Buffer.from(lines.join(''));
  const mapped = mapLines(log, options, [2], shared);
  expect(mapped).toEqual(mapBlankLines(log, options));
  return mapped;
}

it.each(['sql', 'unique_id', 'adapter_type'])('an attribute %s that is an object is no text', (name) => {
  expectSame([
    logLine(UNKNOWN, 'of zebra', { [name]: { zebra: 1 } }),
    logLine(UNKNOWN, 'of zebra and okapi', { sql: 'select okapi from t' }),
  ]);
});

it('a node is named by log records of any event, and by spans of some', () => {
  const shown = logLine(UNKNOWN, 'of zebra and okapi', {});
  const phase = spanLine(2, 'phase.PhaseExecuted', { unique_id: 'model.shop.zebra' });
  expectSame([phase, logLine(UNKNOWN, '', { unique_id: 'model.shop.okapi' }), shown]);
});

it('a text that would be an object but for a blank names no node that caused a skip', () => {
  const cause = spanLine(1, NODE, { ...SUCCESS, unique_id: 'model.shop.zebra' });
  const skipped = { node_outcome: 'NODE_OUTCOME_SKIPPED', unique_id: 'model.shop.okapi' };
  const upstream = { upstream_unique_id: 'model.shop.zebra' };
  const span = (detail: unknown) => spanLine(2, NODE, { ...skipped, node_skip_upstream_detail: detail });
  expect(expectSame([cause, span(upstream)]).join('')).toContain('skip_cause');
  expect(expectSame([cause, span(` ${JSON.stringify(upstream)}`)]).join('')).not.toContain('skip_cause');
});

it('a hash stands for a statement whose own hash is no text', () => {
  const span = spanLine(1, QUERY, { query_outcome: 'QUERY_OUTCOME_SUCCESS', sql: 'select 1', sql_hash: 5 });
  expect(expectSame([span], { redaction: 'statements' })).toHaveLength(1);
});

it('an event may have a name of any length', () => {
  for (const length of [1, 127, 128, 250])
    expectSame([
      logLine(`x.${'n'.repeat(length)}`, 'a', {}),
      logLine('x.', 'a', {}),
      spanLine(1, NODE, { ...SUCCESS, unique_id: 'a' }),
    ]);
});

it('attributes that come of two objects and have one name are one', () => {
  const details = { node_test_detail: { x: 1 }, node_freshness_outcome: { x: 2 } };
  expectSame([spanLine(1, NODE, { ...SUCCESS, unique_id: 'test.shop.a', ...details })]);
  expectSame([logLine(UNKNOWN, '', { a: { b: { c: 1 } }, 'a.b': { c: 2 } })]);
});

it('a text within a list is shown by the names that the run knows, whatever another run knew', () => {
  const naming = logLine(UNKNOWN, '', { unique_id: 'model.shop.zebra' });
  const list = logLine(UNKNOWN, '', { node_outcome: [{ a: 'of zebra' }] });
  expectSame([list, naming, list], {}, [naming, list]);
});

it('what passes as a test need not pass as fresh', () => {
  const detail = { node_freshness_outcome: 'SOURCE_FRESHNESS_OUTCOME_FAILED' };
  const test = spanLine(1, NODE, { ...SUCCESS, unique_id: 'test.shop.a', node_test_detail: detail });
  const source = spanLine(2, NODE, { ...SUCCESS, unique_id: 'source.shop.a.b', node_freshness_outcome: detail });
  expect(expectSame([test, source]).join('')).toContain('source_stale');
});

it('a statement of no known database teaches what it holds by the one that is known as its span is sent', () => {
  const query = { query_outcome: 'QUERY_OUTCOME_SUCCESS', sql: 'select `okapi`, "zebra" from t' };
  const other = { query_outcome: 'QUERY_OUTCOME_SUCCESS', sql: 'select 1', adapter_type: 'bigquery' };
  const log = logLine(UNKNOWN, 'of okapi and zebra', {});
  expectSame([log, spanLine(1, QUERY, query), spanLine(2, QUERY, other), spanLine(3, QUERY, other), log], {
    maxBufferedSpans: 1,
  });
});

it('spans that waited are right after the constants of layouts were forgotten', () => {
  const log = Buffer.from(
    [1, 2, 3].map((id) => spanLine(id, NODE, { ...SUCCESS, unique_id: `model.shop.a${id}` })).join(''),
  );
  const mapper = new OtelRunMapper(DEFAULT_MAPPING_OPTIONS);
  for (const push of cut(log, [9])) mapper.pushLines(push);
  LAYOUT_CONSTANTS.clear();
  LAYOUT_CONSTANTS.add('#'.repeat(64 * 1024));
  expect(finish(mapper, log, [])).toEqual(mapBlankLines(log));
});

it('more names than there is room for are mapped all the same', () => {
  const lines = Array.from({ length: 38 }, (_, line) => {
    const names = Array.from(
      { length: 100 },
      (_, name) => `${String(line * 100 + name).padStart(5, '0')}${'n'.repeat(90)}`,
    );
    return logLine(UNKNOWN, '', Object.fromEntries(names.map((name) => [`a${name}`, 1])));
  });
  const log = Buffer.from(lines.join(''));
  const plain = mapBlankLines(log);
  // Wherever in a line's names it ends; before a push more has to be left.
  for (let left = 1_100_000; left < 1_130_000; left += 10_000) {
    LAYOUT_CONSTANTS.clear();
    for (let part = 0; LAYOUT_CONSTANTS.hasRoom(left); part++) LAYOUT_CONSTANTS.add(String(part).padStart(4_000));
    expect(mapLines(log)).toEqual(plain);
  }
  LAYOUT_CONSTANTS.clear();
});

it('spans of many runs wait, more than there is room for', () => {
  const options = { ...DEFAULT_MAPPING_OPTIONS, redaction: 'off' as const };
  const shared = new SharedMapping('off');
  const runs = Array.from({ length: 44 }, (_, run) => {
    const span = (id: number) => {
      const display = 'x'.repeat(id % 5 === 0 ? 100_000 + run : id * 10);
      return spanLine(id, NODE, { ...SUCCESS, name: display, unique_id: `model.shop.a${run}` });
    };
    const log = Buffer.from(Array.from({ length: 40 }, (_, id) => span(id + 1)).join(''));
    return { log, mapper: new OtelRunMapper(options, shared), pushes: [...cut(log, [7, 3])] };
  });
  for (let round = 0; round < 10; round++)
    for (const { mapper, pushes } of runs) for (const push of pushes.splice(0, 1)) mapper.pushLines(push);
  for (const { mapper, log, pushes } of runs) {
    expect(pushes).toEqual([]);
    expect(finish(mapper, log, [])).toEqual(mapBlankLines(log, options));
  }
});
