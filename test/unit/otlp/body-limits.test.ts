import { describe, expect, it } from 'vitest';
import { lengthDelimited } from '../../../src/otlp/any-value.js';
import { BODY_LIMITS, WireCounter } from '../../../src/otlp/body-limits.js';
import { createDecoding } from '../../../src/otlp/create-decoding.js';
import { LargeBodyDecoder } from '../../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../../src/record/record-batch.js';
import { decodeAtOnce } from '../../fake/decode-at-once.js';
import { sampleBodies } from '../../fake/sample-run.js';

/** So many messages in one field, none of which has anything in it. */
const empties = (field: number, count: number) => Buffer.alloc(2 * count, Buffer.from([(field << 3) | 2, 0]));
const group = (content: Uint8Array) => lengthDelimited(1, content);
const scope = (content: Uint8Array) => group(lengthDelimited(2, content));
const span = (content: Uint8Array) => scope(lengthDelimited(2, content));
/** So many spans (or log records), each with this in it. */
const items = (count: number, content: Uint8Array) =>
  scope(Buffer.concat(Array.from({ length: count }, () => lengthDelimited(2, content))));

function countAll(signal: Signal, body: Uint8Array): void {
  const counter = new WireCounter(signal, body);
  while (counter.count(1_000));
}

const { groups, scopes, items: itemCount, attributes, events, links, fields } = BODY_LIMITS;

describe('counting what a request holds', () => {
  it.each([
    ['resources', 'traces', groups, (count: number) => empties(1, count)],
    ['scopes in one resource', 'traces', scopes, (count: number) => group(empties(2, count))],
    ['spans', 'traces', itemCount, (count: number) => scope(empties(2, count))],
    ['log records', 'logs', itemCount, (count: number) => scope(empties(2, count))],
    ['fields of one span', 'traces', fields, (count: number) => span(Buffer.alloc(2 * (count - 1), '\x20\x01'))],
    ['links of one span', 'traces', fields, (count: number) => span(empties(13, count - 1))],
    ['attributes of a resource', 'traces', fields, (count: number) => group(lengthDelimited(1, empties(1, count - 1)))],
    ['attributes in all', 'logs', attributes, (count: number) => items(count / 1_000, empties(6, 1_000))],
    ['events in all', 'traces', events, (count: number) => items(count / 1_000, empties(11, 1_000))],
    ['links in all', 'traces', links, (count: number) => items(count / 1_000, empties(13, 1_000))],
  ] as const)('takes as many %s as there may be, and no more', (_what, signal, limit, bodyOf) => {
    // Parts that are counted for themselves, too, count as one field of what they stand in.
    expect(() => countAll(signal, bodyOf(limit))).not.toThrow();
    expect(() => countAll(signal, bodyOf(limit + 2_000))).toThrow(
      /^A request may hold \d+ [a-z, ]+; send smaller batches\.$/,
    );
  });

  it.each(['protobuf', 'json'] as const)('counts that of a short body as well, in %s', (encoding) => {
    const { codecs, bodies } = createDecoding({ engineNames: [] });
    const body = group(Buffer.concat([lengthDelimited(1, empties(1, 9_000)), empties(2, 500)]));
    expect(body.length).toBeLessThan(20_000);
    const sent = encoding === 'json' ? codecs.json.encode(codecs.protobuf.decode('traces', body)) : body;
    const { traces } = bodies[encoding];
    if (!(traces instanceof LargeBodyDecoder)) throw new Error('another decoder');
    expect(() => decodeAtOnce(traces, sent)).toThrow(/attributes/);
  });

  it('counts a resource once for each of its scopes, wherever it stands', () => {
    const resource = lengthDelimited(1, empties(1, 1_000));
    expect(() => countAll('traces', group(Buffer.concat([resource, empties(2, 3_900)])))).not.toThrow();
    for (const parts of [
      [resource, empties(2, 4_100)],
      [empties(2, 4_100), resource],
    ]) {
      expect(() => countAll('traces', group(Buffer.concat(parts)))).toThrow(/4000000 attributes/);
    }
  });

  it('counts values in lists and maps, however deep', () => {
    const list = lengthDelimited(5, empties(1, fields));
    const attribute = lengthDelimited(
      9,
      lengthDelimited(2, lengthDelimited(6, lengthDelimited(1, lengthDelimited(2, list)))),
    );
    expect(() => countAll('traces', span(attribute))).toThrow(/fields in one resource/);
  });

  it.each([
    ['cut off', (body: Buffer) => body.subarray(0, -3)],
    ['with garbage behind it', (body: Buffer) => Buffer.concat([body, Buffer.alloc(50, 0xff)])],
    ['in groups without end', () => Buffer.alloc(100_000, 0x0b)],
    ['with lengths of gigabytes', () => Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 0x0a])],
    ['of nothing', () => Buffer.alloc(0)],
  ])('comes to an end with a body %s', (_name, change) => {
    for (const { signal, body } of sampleBodies('build-mixed'))
      expect(() => countAll(signal, change(body))).not.toThrow();
  });
});
