import { describe, expect, it } from 'vitest';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { halvesOf, partsByTrace } from '../../../src/otlp/request-parts.js';

const codec = new JsonCodec();
const requestOf = (groups: readonly (readonly (readonly string[])[])[]) =>
  codec.decode(
    'traces',
    Buffer.from(
      JSON.stringify({
        resourceSpans: groups.map((scopes, group) => ({
          resource: { attributes: [{ key: 'group', value: { intValue: group } }] },
          scopeSpans: scopes.map((traces, scope) => ({
            scope: { name: `scope ${scope}` },
            spans: traces.map((trace, index) => ({
              traceId: trace.repeat(32),
              spanId: `${group}${scope}${index}`.padEnd(16, '0'),
            })),
          })),
        })),
      }),
    ),
  );
/** Each span as trace, group, scope and index. */
const spansOf = (request: ReturnType<typeof requestOf> | undefined) =>
  (request?.resources ?? []).flatMap(({ resource, scopes }) =>
    scopes.flatMap(({ scope, records }) =>
      records.map(
        ({ traceId, spanId }) =>
          `${traceId[0]} ${resource.attributes[0]?.value}/${scope.name.slice(-1)}/${spanId.slice(0, 3)}`,
      ),
    ),
  );
const MIXED = requestOf([[['a', 'b', 'a'], ['b']], [['c', 'a']]]);

describe('parts of a request', () => {
  it('are those of each trace, with their resources and scopes', () => {
    const parts = partsByTrace(MIXED);
    expect([...parts.keys()]).toEqual(['a', 'b', 'c'].map((one) => one.repeat(32)));
    expect(spansOf(parts.get('a'.repeat(32)))).toEqual(['a 0/0/000', 'a 0/0/002', 'a 1/0/101']);
    expect(spansOf(parts.get('b'.repeat(32)))).toEqual(['b 0/0/001', 'b 0/1/010']);
    expect(spansOf(parts.get('c'.repeat(32)))).toEqual(['c 1/0/100']);
  });

  it('are its halves, of which one record has but one', () => {
    expect(halvesOf(MIXED).map(spansOf)).toEqual([
      ['a 0/0/000', 'b 0/0/001', 'a 0/0/002'],
      ['b 0/1/010', 'c 1/0/100', 'a 1/0/101'],
    ]);
    expect(halvesOf(requestOf([[['a', 'b', 'a']]])).map((half) => spansOf(half).length)).toEqual([2, 1]);
    expect(halvesOf(requestOf([[['a']]]))).toHaveLength(1);
  });
});
