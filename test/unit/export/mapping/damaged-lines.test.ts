import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { itemsOf } from '../../../fake/mapped-items.js';
import { ENGINE } from './read-sample.js';

/** Lines before and behind a damaged one. */
const NEIGHBORS = 40;
const LOG = readFileSync('test/fixture/samples/build-mixed/otel.jsonl');

it('lines that are no records are counted and passed over, wherever they are cut off', () => {
  const line = LOG.subarray(0, LOG.indexOf('\n'));
  const end = LOG.subarray(
    LOG.indexOf('{"record_type":"SpanEnd"'),
    LOG.indexOf('\n', LOG.indexOf('{"record_type":"SpanEnd"')),
  );
  for (let length = 1; length < end.length; length += 3) {
    const mapper = new OtelRunMapper();
    const lines = Buffer.concat([line, Buffer.from('\n'), end.subarray(0, length), Buffer.from('\n')]);
    expect(mapper.pushLines({ resource: ENGINE, offset: 0, lines })).toBe(1);
    // Without a line break, and without bytes behind it.
    const torn = Uint8Array.from(end.subarray(0, length));
    expect(mapper.pushLines({ resource: ENGINE, offset: lines.length, lines: torn })).toBe(1);
    expect(mapper.bufferedCount).toBe(0);
  }
});

it('a span whose line turns out to be damaged as it is sent is passed over', () => {
  const text = LOG.toString().replace('{"node_warning_outcome":', '{"node_warning_outcome";');
  const mapper = new OtelRunMapper();
  const whole = new OtelRunMapper();
  mapper.pushLines({ resource: ENGINE, offset: 0, lines: Buffer.from(text) });
  whole.pushLines({ resource: ENGINE, offset: 0, lines: LOG });
  const difference = itemsOf(whole.take(true)).length - itemsOf(mapper.take(true)).length;
  expect(difference).toBe(1);
});

it.each([
  ['a raw control character', String.fromCharCode(1)],
  ['an escape that is none', '\\q'],
])('a span with %s in any text is counted, or passed over as it is sent, and the others are not', (_what, damage) => {
  const lines = LOG.toString().trimEnd().split('\n');
  const places = lines.flatMap((line, index) => {
    const attributes = line.indexOf('"attributes":{');
    return line.startsWith('{"record_type":"Span')
      ? [...line.slice(attributes).matchAll(/"([a-z_]+)":"[^"]/g)].map((match) => ({
          index,
          name: `${line.slice(16, 25)} ${line.match(/event_type":"([^"]*)/)?.[1]} ${match[1]}`,
          at: attributes + match.index + match[0].length - 1,
        }))
      : [];
  });
  // One of each kind of span, start or end, and of attribute.
  const kinds = new Map(places.map((place) => [place.name, place]));
  expect(kinds.size).toBeGreaterThan(100);
  for (const { index, at } of kinds.values()) {
    const line = lines[index] ?? '';
    // Those around it are enough to be spared: the whole log for each kind took half a minute.
    const damaged = [
      ...lines.slice(Math.max(0, index - NEIGHBORS), index),
      line.slice(0, at) + damage + line.slice(at),
      ...lines.slice(index + 1, index + 1 + NEIGHBORS),
    ];
    const mapper = new OtelRunMapper();
    const countedCount = mapper.pushLines({
      resource: ENGINE,
      offset: 0,
      lines: Buffer.from(`${damaged.join('\n')}\n`),
    });
    expect(countedCount).toBeLessThanOrEqual(1);
    expect(itemsOf(mapper.take(true)).length).toBeGreaterThan(0);
  }
});
