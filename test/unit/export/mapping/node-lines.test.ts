import { expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { SharedMapping } from '../../../../src/export/mapping/shared-mapping.js';
import { itemsOf } from '../../../fake/mapped-items.js';
import { mapBlankLines, mapLines } from './mapped-bytes.js';
import { ENGINE } from './read-sample.js';

const TRACE = '01a1fb8ea78d7281ae8c1be536b674cd';
const TYPE = 'v1.public.events.fusion.node.NodeEvaluated';

interface Node {
  readonly span: number;
  /** Default `a`. */
  readonly node?: string;
  /** Default `SUCCESS`. */
  readonly outcome?: string;
  readonly message?: string;
  /** Further attributes, as JSON without braces. */
  readonly more?: string;
  /** When it ended, in milliseconds; default 0. */
  readonly atMs?: number;
}

function startOf(node: Node): string {
  return `{"record_type":"SpanStart",${head(node)},"severity_number":9,"severity_text":"INFO","event_type":"${TYPE}","attributes":{${attributes(node)}}}\n`;
}

function endOf({ outcome = 'SUCCESS', message, atMs = 0, ...node }: Node): string {
  const status = message === undefined ? '{"message":null,"code":1}' : `{"message":"${message}","code":2}`;
  return `{"record_type":"SpanEnd",${head(node)},"end_time_unix_nano":"${1_700_000_000_001 + atMs}000000","severity_number":9,"severity_text":"INFO","status":${status},"event_type":"${TYPE}","attributes":{"node_outcome":"NODE_OUTCOME_${outcome}",${attributes(node)}}}\n`;
}

function head({ span, node = 'a' }: Node): string {
  const id = span.toString(16).padStart(16, '0');
  return `"trace_id":"${TRACE}","span_id":"${id}","span_name":"Node evaluated (${node})","parent_span_id":"00000000000000ff","links":null,"start_time_unix_nano":"1700000000000000000"`;
}

function attributes({ node = 'a', more }: Node): string {
  const extra = more === undefined ? '' : `${more},`;
  return `"database":"prod",${extra}"name":"${node}","schema":"main","unique_id":"model.shop.${node}"`;
}

const linesOf = (node: Node) => startOf(node) + endOf(node);

/** The lines of a log give the same bytes whether their attributes are copied or put together. */
function expectSame(log: string, maxBufferedSpans = 8192): void {
  const bytes = Buffer.from(log);
  expect(mapLines(bytes, { maxBufferedSpans }, [7], new SharedMapping())).toEqual(
    mapBlankLines(bytes, { maxBufferedSpans }),
  );
}

it('a failed node is explained by the errors that were logged for it', () => {
  const error = `{"record_type":"LogRecord","trace_id":"${TRACE}","span_id":null,"span_name":null,"event_id":null,"time_unix_nano":"1700000000000000000","severity_number":17,"severity_text":"ERROR","body":"the table orders is missing","event_type":"v1.public.events.fusion.log.LogMessage","attributes":{"code_name":"DbDriverFailed","unique_id":"model.shop.a"}}\n`;
  const failed = linesOf({ span: 2, outcome: 'ERROR', message: 'Database Error' });
  const log = linesOf({ span: 1 }) + failed + error;
  expectSame(log);
  expect(mapBlankLines(Buffer.from(log)).join('')).toContain('DbDriverFailed');
});

it('a text is shown by the names that are known as its span is sent, also where they were learned while it was held', () => {
  const text = '"display":"nothing of zebra or okapi"';
  const spans = Array.from({ length: 30 }, (_, span) => {
    const node = span === 12 ? 'zebra' : span === 20 ? 'okapi' : 'a';
    return linesOf({ span: span + 1, node, more: text });
  });
  for (const held of [1, 5, 11, 8192]) expectSame(spans.join(''), held);
  const shown = mapBlankLines(Buffer.from(spans.join('')), { maxBufferedSpans: 5 });
  expect(shown.filter((span) => span.includes('of zebra or okapi')).length).toBeGreaterThan(9);
  expect(shown.filter((span) => span.includes('of ? or ?')).length).toBeGreaterThan(5);
});

it('a node is remembered although the first line of it repeated an end', () => {
  const first = linesOf({ span: 1, node: 'b' });
  const repeated = endOf({ span: 1, node: 'c' });
  const query = linesOf({ span: 2, node: 'c' }).replaceAll(TYPE, 'v1.public.events.fusion.query.QueryExecuted');
  expectSame(linesOf({ span: 9, node: 'x' }) + first + repeated + linesOf({ span: 3, node: 'c' }) + query);
});

it('spans are right after more texts than are remembered, and where texts are too long for it', () => {
  const spans = Array.from({ length: 9000 }, (_, span) => {
    const word = `${span % 97 === 0 ? 'x'.repeat(span % 400) : ''}${span}`;
    return linesOf({ span: span + 1, more: `"display":"unknown ${word}","empty":"","extra":"${word}"` });
  });
  expectSame(spans.join(''));
});

it('spans that are too large to stand beside others are written all the same', () => {
  const spans = [10, 15_000, 120_000, 200_000, 15_000, 10].flatMap((length, number) => [
    linesOf({ span: number + 1, more: `"name":"${'n'.repeat(length)}"` }).replaceAll('"name":"a",', ''),
    linesOf({ span: number + 100 }),
  ]);
  expectSame(spans.join(''));
});

it('a name of a run is shown in that run alone', () => {
  const shared = new SharedMapping();
  const text = '"display":"about zebra"';
  const withName = Buffer.from(linesOf({ span: 1, node: 'zebra', more: text }) + linesOf({ span: 2, more: text }));
  const without = Buffer.from(linesOf({ span: 1, more: text }) + linesOf({ span: 2, more: text }));
  for (const log of [withName, without, withName, without]) {
    expect(mapLines(log, {}, [1], shared)).toEqual(mapBlankLines(log));
  }
});

it('runs that take turns give what each gives alone, and learn no names from each other', () => {
  const shared = new SharedMapping();
  const logs = Array.from({ length: 70 }, (_, run) =>
    [1, 2, 3, 4].map((span) => {
      const node = span % 2 === 0 ? `own${run}` : 'shared';
      return Buffer.from(linesOf({ span, node, more: `"display":"own${run - 1} shared own${run}"` }));
    }),
  );
  const taken = logs.map(() => new OtelRunMapper(DEFAULT_MAPPING_OPTIONS, shared));
  const alone = logs.map(() => new OtelRunMapper());
  for (let piece = 0; piece < 4; piece++) {
    for (const mappers of [taken, alone]) {
      logs.forEach((log, run) => {
        const before = Buffer.concat(log.slice(0, piece)).length;
        mappers[run]?.pushLines({ resource: ENGINE, offset: before, lines: log[piece] ?? Buffer.alloc(0) });
      });
    }
  }
  const bytesOf = (mapper: OtelRunMapper) =>
    itemsOf(mapper.take(true)).map((item) => (item.signal === 'traces' ? item.bytes.toString('hex') : ''));
  expect(taken.map(bytesOf)).toEqual(alone.map(bytesOf));
});
